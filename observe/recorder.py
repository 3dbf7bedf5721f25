"""The recorder: a tap that writes turns down, one line each, while they are in the air and after.

The one tap that keeps something per turn: its line, from `turn_received` to the turn's end, when it
is handed to `over` and forgotten. At most `most` lines are in the air; past that the oldest goes
unrecorded, for a record must cost a turn nothing.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

from msgspec.structs import replace

from observe.record import Line, Timeline
from observe.seen import FirstEvent as First
from observe.seen import Names, TurnEnded, TurnFailed, TurnReceived, TurnRouted, TurnStarted
from observe.taps import Quiet
from turns.events import Usage

MOST = 4096
Over = Callable[[Line, str, tuple[str, ...]], None]
"""Takes the line of a turn that is over, the message of its failure, and what of it was ignored."""


def session_name(owner: str, key: str, harness: str) -> str:
    """A session's short name. An owner's turns without a key are one session a harness."""
    whose = key or f"~{harness}"
    return blake2b(f"{owner}\0{whose}".encode("utf-8", "replace"), digest_size=9).hexdigest()


class Recorder(Quiet):
    """One per ingress. `over` hears of each turn that ended."""

    over: Over

    def __init__(self, *, most: int = MOST) -> None:
        self.over = lambda *_: None
        self._most = most
        self._air: OrderedDict[str, tuple[Line, Timeline, tuple[str, ...]]] = OrderedDict()
        self._unrecorded = 0

    @property
    def count(self) -> int:
        """Turns in the air, those that go unrecorded too."""
        return len(self._air) + self._unrecorded

    def turn_received(self, seen: TurnReceived) -> None:
        names = seen.names
        line = Line(
            turn=names.turn,
            session=session_name(seen.owner, names.session, seen.harness),
            key=names.session,
            owner=seen.owner,
            at=seen.at,
            api=names.api,
            model=names.model,
            harness=seen.harness,
            request=names.request,
            stream=seen.stream,
        )
        self._air[names.turn] = line, Timeline(time.time() - seen.at), seen.ignored
        while len(self._air) > self._most:
            self._air.popitem(last=False)
            self._unrecorded += 1

    def turn_routed(self, seen: TurnRouted) -> None:
        if (line := self._line(seen.names)) is not None:
            line.replica, line.why, line.attempts = seen.replica, seen.why, seen.attempt
            line.routed = seen.at - line.at

    def turn_started(self, seen: TurnStarted) -> None:
        if (line := self._line(seen.names)) is not None:
            line.input, line.cached = seen.input_tokens, seen.cached_tokens

    def first_event(self, seen: First) -> None:
        if (line := self._line(seen.names)) is not None:
            line.ttft = seen.seconds

    def turn_ended(self, seen: TurnEnded) -> None:
        if (line := self._ending(seen.names)) is not None:
            line.stop, line.seconds = seen.stop, seen.seconds
            used(line, seen.usage)
            self._end(line, "")

    def turn_failed(self, seen: TurnFailed) -> None:
        if (line := self._ending(seen.names)) is not None:
            line.failed, line.seconds = seen.kind, seen.seconds
            used(line, seen.usage)
            self._end(line, seen.message)

    def timeline(self, turn: str) -> Timeline | None:
        """Where the times of a turn's blocks are kept; None for one that is not in the air."""
        found = self._air.get(turn)
        return found[1] if found else None

    def in_the_air(self, most: int) -> list[Line]:
        """The latest turns that are not over, as they are now."""
        now, latest = time.time(), list(self._air.values())[-most:]
        return [
            replace(line, seconds=now - line.at, spans=list(times.spans), doing=times.doing)
            for line, times, _ in latest
        ]

    def _line(self, names: Names) -> Line | None:
        found = self._air.get(names.turn)
        return found[0] if found else None

    def _ending(self, names: Names) -> Line | None:
        line = self._line(names)
        if line is None and self._unrecorded:
            self._unrecorded -= 1
        return line

    def _end(self, line: Line, message: str) -> None:
        _, times, ignored = self._air.pop(line.turn)
        line.spans = times.spans
        self.over(line, message, ignored)


def used(line: Line, usage: Usage) -> None:
    """Write down what a turn that is over has cost."""
    line.input, line.cached = usage.input or line.input, usage.cached or line.cached
    line.output, line.reasoning = usage.output, usage.reasoning
