"""`treadle replay FILE`: ask recorded turns again, of another deployment, and compare.

The file is one that a server writes (`observe.turns_folder`). A response that goes on from an
earlier one is asked of the new one that stands for it. What is compared is the shape of a reply
(its calls, how it ended), and how long it took; its words are the model's. A turn that fails, or
whose answer cannot be read to its end, fails alone.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct
from rich.console import Console

from cli.output import NO, Output, speaks
from cli.remote import Remote, RemoteError, reaches
from cli.replies import BrokenReplyError, Heard, hear
from observe.turn_traces import TurnTrace, decode

TIMEOUT_S = 1800.0


class Replayed(Struct):
    """A turn as it was, and as it was this time; `error` where it was refused, failed or broke."""

    turn: str
    path: str
    then: Heard
    now: Heard | None = None
    error: str = ""
    late: float = 0.0

    @property
    def same(self) -> bool:
        return self.now is not None and self.now.like(self.then)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--model", help="Ask this model instead of the recorded one.")
@click.option("--speed", type=click.FloatRange(0), default=0.0, help="1: at the recorded pace.")
@click.option("--at-once", type=click.IntRange(1, 256), default=8, show_default=True)
@click.option("--most", type=click.IntRange(1), help="Only so many turns, the first ones.")
@speaks
@reaches()
def replay(
    out: Output,
    *,
    remote: Remote,
    file: Path,
    model: str | None,
    speed: float,
    at_once: int,
    most: int | None,
) -> None:
    """Ask the turns of FILE again, and compare. Exit code 1: one failed, made other calls
    or ended otherwise.

    Without --speed they are asked as fast as --at-once allows, each session's in their order.
    """
    try:
        traces = read(file)[:most]
    except msgspec.DecodeError as error:
        raise out.fail(f"{file} is no recording of turns: {error}") from None
    if not traces:
        raise out.fail(f"{file} has no turns with their requests in it")
    found = Replay(remote, model, speed).run(traces, out, at_once)
    value = summary(found)
    value["turns"] = msgspec.to_builtins([one for one in found if not one.same or one.error])
    out.give(value, lambda console: told(console, value))
    if any(not one.same for one in found):
        raise click.exceptions.Exit(NO)


def read(file: Path) -> list[TurnTrace]:
    """The turns of a recording, in the order in which they were asked."""
    lines = file.read_bytes().splitlines()
    traces = [decode(line) for line in lines if line.strip()]
    return sorted((one for one in traces if bytes(one.body)), key=lambda one: one.at)


class Replay:
    """One run. Turns of a session follow each other, sessions run beside each other."""

    def __init__(self, remote: Remote, model: str | None, speed: float) -> None:
        self._remote = remote
        self._model = model
        self._speed = speed
        self._stands_for: dict[str, str] = {}
        self._began = 0.0

    def run(self, traces: Sequence[TurnTrace], out: Output, at_once: int) -> list[Replayed]:
        """All turns, whatever becomes of them."""
        first, found = traces[0].at, []
        self._began = time.monotonic()
        with (
            out.working(f"asking {len(traces)} turns") as show,
            ThreadPoolExecutor(at_once) as pool,
        ):
            sessions = _sessions(traces)
            for number, replayed in enumerate(
                pool.map(lambda session: [self._one(one, first) for one in session], sessions)
            ):
                found += replayed
                show(f"{number + 1} of {len(sessions)} sessions, {len(found)} turns")
        return found

    def _one(self, trace: TurnTrace, first: float) -> Replayed:
        late = 0.0
        if self._speed:
            due = self._began + (trace.at - first) / self._speed
            time.sleep(max(0.0, due - time.monotonic()))
            late = max(0.0, time.monotonic() - due)
        then = Heard.of(trace)
        try:
            body = self._body(trace)
            began = time.perf_counter()
            with self._remote.open("POST", trace.path, body, timeout=TIMEOUT_S) as answer:
                now = hear(answer, trace.api, stream=trace.stream, began=began)
        except (RemoteError, BrokenReplyError) as error:
            return Replayed(trace.turn, trace.path, then, None, str(error), late)
        self._stands_for[f"resp_{trace.turn}"] = now.id
        return Replayed(trace.turn, trace.path, then, now, "", late)

    def _body(self, trace: TurnTrace) -> bytes:
        """The request as it was, but for the model, for ids that have another name here, and for
        what cannot be asked in one plain request.
        """
        sent = json.loads(bytes(trace.body))
        if self._model:
            sent["model"] = self._model
        if previous := sent.get("previous_response_id"):
            sent["previous_response_id"] = self._stands_for.get(previous, previous)
        sent.pop("type", None)  # a frame of a WebSocket has one
        if sent.pop("generate", None) is False:
            sent["max_output_tokens"] = 1  # a frame that only prefilled drew one token
        sent.pop("background", None)  # its answer would be a promise
        if trace.api == "chat" and (sent.get("n") or 1) > 1:
            # Each choice was recorded as a turn: the last digits of its id say which it was, and
            # so much its seed was moved on.
            sent["n"] = 1
            if sent.get("seed") is not None:
                sent["seed"] += int(trace.turn[-2:])
        return json.dumps(sent, ensure_ascii=False).encode()


def _sessions(traces: Sequence[TurnTrace]) -> list[list[TurnTrace]]:
    """Turns of one session together; one without a session is alone, unless it goes on."""
    found: dict[str, list[TurnTrace]] = {}
    known: dict[str, str] = {}
    for trace in traces:
        key = trace.session or trace.turn
        if trace.api == "responses":
            previous = json.loads(bytes(trace.body)).get("previous_response_id")
            key = known.get(str(previous), key)
            known[f"resp_{trace.turn}"] = key
        found.setdefault(key, []).append(trace)
    return list(found.values())


def summary(found: Sequence[Replayed]) -> dict[str, Any]:
    """The run in numbers: seconds at the median and at the 99th percentile, then and now."""
    heard = [one for one in found if one.now is not None]
    return {
        "asked": len(found),
        "failed": len(found) - len(heard),
        "of_another_shape": sum(not one.same for one in heard),
        "seconds": {
            "then": _percentiles(one.then.seconds for one in heard),
            "now": _percentiles(one.now.seconds for one in heard if one.now),
        },
        "ttft": {
            "then": _percentiles(one.then.ttft for one in heard),
            "now": _percentiles(one.now.ttft for one in heard if one.now),
        },
        "output_tokens": {
            "then": sum(one.then.output for one in heard),
            "now": sum(one.now.output for one in heard if one.now),
        },
        "late_at_most": max((one.late for one in found), default=0.0),
    }


def _percentiles(values: Iterable[float]) -> dict[str, float]:
    known = sorted(value for value in values if value >= 0)
    if not known:
        return {}
    last = len(known) - 1
    return {"p50": known[last // 2], "p99": known[math.ceil(last * 0.99)]}


def told(console: Console, value: dict[str, Any]) -> None:
    """The run for a person."""
    console.print(
        f"{value['asked']} {'turn' if value['asked'] == 1 else 'turns'} asked again, "
        f"{value['failed']} failed, "
        f"{value['of_another_shape']} of another shape"
    )
    for name in ("ttft", "seconds"):
        for when in ("then", "now"):
            times = value[name][when]
            shown = ", ".join(f"{key} {seconds * 1000:.0f} ms" for key, seconds in times.items())
            console.print(f"  {name:8} {when:5} {shown or '-'}")
    for one in value["turns"][:20]:
        why = one["error"] or f"{_shape(one['then'])} became {_shape(one['now'])}"
        console.print(f"  {one['turn']}: {why}", markup=False)


def _shape(heard: dict[str, Any]) -> str:
    return f"{', '.join(heard['shape']) or 'no call'} ({heard['stop']})"
