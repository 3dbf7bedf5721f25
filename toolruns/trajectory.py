"""The record of a run: one event a line, append-only, rows by reference.

JSONL is the truth; spans are made from it. A chunk's rows are named by the store's segment and
batch number and by a digest, so that a record can be replayed without its source.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct, field

from toolruns.signals import EventType, Note

VERSION = 1


class Entry(Struct, frozen=True, omit_defaults=True):
    """One event. `t_ms` counts from the run's opening; `seq` from 0 without gaps."""

    trajectory: str
    seq: int
    t_ms: float
    type: EventType
    data: dict[str, Any] = field(default_factory=dict)
    v: int = VERSION


class Recorder:
    """Numbers and dates the notes of one run."""

    def __init__(self, trajectory: str, began: float) -> None:
        self._trajectory = trajectory
        self._began = began
        self._seq = 0

    def record(self, note: Note, now: float, **more: Any) -> Entry:
        t_ms = round((now - self._began) * 1000, 3)
        entry = Entry(self._trajectory, self._seq, t_ms, note.type, {**note.data, **more})
        self._seq += 1
        return entry


def to_line(entry: Entry) -> bytes:
    return msgspec.json.encode(entry) + b"\n"


def from_lines(text: bytes) -> list[Entry]:
    """The entries of a record. A torn last line, as a crash leaves it, is left out."""
    lines = text.split(b"\n")
    whole = [line for line in lines[:-1] if line]
    return [msgspec.json.decode(line, type=Entry) for line in whole]


def faults(entries: Iterable[Entry]) -> list[str]:
    """What breaks the laws of a record: one opened, one terminated, nothing after the end."""
    found: list[str] = []
    seen = list(entries)
    types = [entry.type for entry in seen]
    if types.count("trajectory.opened") != 1 or types[:1] != ["trajectory.opened"]:
        found.append("a record begins with its one trajectory.opened")
    if types.count("trajectory.terminated") > 1:
        found.append("a run terminates once")
    if "trajectory.terminated" in types:
        after = types[types.index("trajectory.terminated") + 1 :]
        allowed = {"result.returned", "drilldown.called", "handle.expired", "error.raised"}
        found += [f"{type_} after the end" for type_ in after if type_ not in allowed]
    if [entry.seq for entry in seen] != list(range(len(seen))):
        found.append("the sequence has gaps")
    if any(after.t_ms < before.t_ms for before, after in pairwise(seen)):
        found.append("time goes back")
    return found


def span_of(
    entries: list[Entry], tool: str, call_id: str = "", version: str = ""
) -> dict[str, Any]:
    """The record as an OpenTelemetry span (GenAI and MCP conventions, both still in development).

    Gives `name`, `attributes` and `events` (name, milliseconds, attributes) for whoever exports.
    """
    last = next((e for e in reversed(entries) if e.type == "trajectory.terminated"), None)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.type": "datastore",
        "mcp.method.name": "tools/call",
        "streamtool.trajectory": entries[0].trajectory if entries else "",
    }
    if call_id:
        attributes["gen_ai.tool.call.id"] = call_id
    if version:
        attributes["mcp.protocol.version"] = version
    if last is not None:
        attributes["streamtool.reason"] = last.data["reason"]
        attributes["streamtool.rows"] = last.data["rows"]
        attributes["streamtool.complete"] = last.data["reason"] == "exhausted"
    events = [
        (e.type, e.t_ms, {f"streamtool.{k}": v for k, v in e.data.items() if _plain(v)})
        for e in entries
    ]
    return {"name": f"execute_tool {tool}", "attributes": attributes, "events": events}


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)
