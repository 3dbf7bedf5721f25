"""Trajectories for those who run the server: all callers' runs, from the record and the kept rows.

Nothing here is for a model or a caller: who may ask is decided by whoever calls these. With
`redact` no value of a row and no argument is in an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

from toolruns.rows.drill import Page
from toolruns.rows.handles import Record, UnknownHandleError
from toolruns.rows.keeper import Keeper
from toolruns.rows.sandbox import Sandbox
from toolruns.tool import Tool
from toolruns.trajectory import Entry
from turns.errors import NotFoundError, TreadleError

MOST_EVENTS = 1500
"""Events of a record that are given: of a longer one chunks are left out evenly."""
PLAIN = frozenset({"rows", "bytes", "pages", "verdict", "reason", "mode", "share", "limit"})
"""What an event says beside values of rows and words of the model."""
PAGE = 50


class Run(Struct):
    """One call of a streaming tool, in one line. Times are Unix seconds."""

    handle: str
    tool: str
    owner: str
    call_id: str
    created: float
    used: float
    expires: float
    status: str
    rows: int
    bytes: int
    reason: str = ""
    complete: bool = False
    elapsed: float = 0.0
    verdict: str = ""


class Trajectory(Struct):
    """A run whole. `left_out` counts events that are not shown."""

    run: Run
    mode: str
    unit: str
    arguments: dict[str, Any]
    snapshot: dict[str, Any]
    events: list[Entry]
    left_out: int = 0
    redacted: bool = False


class Trajectories:
    """Reads what the gateway of `keeper`'s rows has recorded."""

    def __init__(self, tools: dict[str, Tool], keeper: Keeper, sandbox: Sandbox) -> None:
        self._tools = tools
        self._keeper = keeper
        self._sandbox = sandbox

    async def listed(self, most: int = 200) -> list[Run]:
        """The latest runs, latest first."""
        records = await self._keeper.all()
        records.sort(key=lambda record: -record.created)
        return [run_of(record) for record in records[:most]]

    async def whole(self, handle: str, *, redact: bool) -> Trajectory:
        """Raises UnknownHandleError."""
        record = await self._record(handle)
        events = await asyncio.to_thread(self._keeper.store.events, record.handle)
        shown = thinned(events, MOST_EVENTS)
        tool = self._tools.get(record.tool)
        snapshot = {} if redact else record.snapshot
        return Trajectory(
            run=run_of(record),
            mode=tool.contract.mode if tool else "",
            unit=tool.contract.unit if tool else "row",
            arguments={} if redact else record.arguments,
            snapshot=snapshot | {"budget": record.snapshot.get("budget")},
            events=[_without_values(e) for e in shown] if redact else shown,
            left_out=len(events) - len(shown),
            redacted=redact,
        )

    async def rows(self, handle: str, offset: int, *, where: str = "", order_by: str = "") -> Page:
        """Rows from `offset` on. Raises UnknownHandleError, and InvalidRequestError for a `where`
        that is none.
        """
        record = await self._record(handle)
        return await self._sandbox.page(
            record.handle, offset=offset, limit=PAGE, where=where, order_by=order_by
        )

    async def told(self, what: str, asked: dict[str, Any]) -> tuple[int, bytes]:
        """An answer as JSON with 200, or the message of an error with 404 or 400: what travels
        between processes. `what` is `listed`, `whole` or `rows`, `asked` are its arguments.
        """
        try:
            match what:
                case "whole":
                    found: Any = await self.whole(**asked)
                case "rows":
                    found = await self.rows(**asked)
                case _:
                    found = await self.listed()
        except TreadleError as error:
            missing = isinstance(error, NotFoundError)
            return (404 if missing else 400), error.message.encode()
        return 200, msgspec.json.encode(found, enc_hook=str)

    async def _record(self, handle: str) -> Record:
        found = await self._keeper.known(handle)
        if found is None:
            raise UnknownHandleError
        return found


def run_of(record: Record) -> Run:
    seen = record.snapshot
    return Run(
        handle=record.handle,
        tool=record.tool,
        owner=record.owner,
        call_id=record.call_id,
        created=record.created,
        used=record.used,
        expires=record.expires,
        status=record.status,
        rows=record.rows,
        bytes=record.bytes,
        reason=seen.get("reason") or "",
        complete=bool(seen.get("complete")),
        elapsed=float(seen.get("elapsed_s") or 0.0),
        verdict=seen.get("verdict") or "",
    )


def thinned(events: list[Entry], most: int) -> list[Entry]:
    """At most about `most` events: all that are no chunk, and chunks at even distances."""
    chunks = [at for at, event in enumerate(events) if event.type == "chunk.received"]
    room = most - (len(events) - len(chunks))
    if len(events) <= most or not chunks:
        return events[:most]
    step = max(2, -(-len(chunks) // max(1, room)))
    out = set(chunks) - set(chunks[::step]) - {chunks[-1]}
    return [event for at, event in enumerate(events) if at not in out]


def _without_values(entry: Entry) -> Entry:
    data = {name: value for name, value in entry.data.items() if name in PLAIN}
    return Entry(entry.trajectory, entry.seq, entry.t_ms, entry.type, data)
