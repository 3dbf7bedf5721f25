"""Records: what is kept of turns and sessions for people to look at. Bounded, and O(1) a token.

Times named `at` are Unix seconds, spans are seconds since the turn was received.
Sizes of text are characters. Nothing here holds what a person or a model wrote, but `Part.text` and
`Detail`, which are only made where the operator lets content be kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from turns.events import (
    Event,
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    TextEnded,
    ToolArgumentsDelta,
    ToolCallCut,
    ToolCallReady,
    ToolCallStarted,
)

DELTAS = (TextDelta, ReasoningDelta)
SpanKind = Literal["reasoning", "text", "call"]
MOST_SPANS = 400
"""Blocks of one reply whose times are kept; a reply of more keeps its first ones."""


class Span(Struct, frozen=True, omit_defaults=True):
    """One block of a reply. A call is `end`ed when it may be dispatched; `cut` says why it was not.

    `call` is the id that the client was told.
    """

    kind: SpanKind
    start: float
    end: float
    size: int = 0
    tool: str = ""
    call: str = ""
    cut: str = ""


class Part(Struct, frozen=True, omit_defaults=True):
    """A block of a prompt: its tokens from `start` up to `end`, and how its text begins."""

    role: str
    start: int
    end: int
    text: str = ""


class PrefixBreak(Struct, frozen=True):
    """Where a prompt left the one before it, as the prefix doctor says it."""

    token: int
    lost: int
    where: str
    cause: str
    before: str = ""
    after: str = ""


class Line(Struct, omit_defaults=True):
    """A turn in one line. `slot` is where its detail lies. `stop` is "" while it is in the air,
    and where it `failed` with an error of that kind; while it is, `doing` says what comes just now.
    """

    turn: str
    session: str
    at: float
    api: str = ""
    model: str = ""
    key: str = ""
    owner: str = ""
    harness: str = ""
    request: str = ""
    stream: bool = False
    replica: str = ""
    why: str = ""
    attempts: int = 0
    routed: float = 0.0
    ttft: float = -1.0
    seconds: float = 0.0
    stop: str = ""
    failed: str = ""
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    spans: list[Span] = []
    doing: str = ""
    broken: str = ""
    slot: str = ""


class Detail(Struct, omit_defaults=True):
    """What else is known of a turn: its prompt in blocks, and the break of its prefix.

    `left_out` prompt blocks stand before the first of `parts`.
    """

    turn: str
    parts: list[Part] = []
    left_out: int = 0
    broken: PrefixBreak | None = None
    message: str = ""
    ignored: list[str] = []
    tools: int = 0


class Row(Struct, omit_defaults=True):
    """A session in one line, as one ingress saw it."""

    session: str
    key: str
    owner: str
    first: float
    last: float
    harness: str = ""
    model: str = ""
    api: str = ""
    turns: int = 0
    failed: int = 0
    calls: int = 0
    breaks: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    seconds: float = 0.0
    live: int = 0


class Timeline:
    """The times of one reply's blocks. `step` is told each batch of events that a lane brings: for
    a delta inside a block that is a clock and two look-ups.
    """

    __slots__ = ("_began", "_clock", "_open", "_size", "_tool", "spans")

    def __init__(self, passed: float = 0.0, clock: Callable[[], float] = time.perf_counter) -> None:
        """`passed`: seconds since the turn was received."""
        self._clock = clock
        self._began = clock() - passed
        self._open = -1.0
        self._size = 0
        self._tool = ""
        self.spans: list[Span] = []

    @property
    def doing(self) -> str:
        """What the reply is in the middle of: the tool of a call, "…" of another block, or ""."""
        return (self._tool or "…") if self._open >= 0 else ""

    def step(self, events: Sequence[Event]) -> None:
        now = self._clock() - self._began
        for event in events:
            if isinstance(event, DELTAS):  # nearly all of them
                self._size += len(event.text)
                if self._open < 0:
                    self._open = now
                continue
            if isinstance(event, ToolArgumentsDelta):
                self._size += len(event.json)
                continue
            match event:
                case ToolCallStarted(name=name):
                    self._open, self._tool = now, name
                case ReasoningEnded():
                    self._close("reasoning", now)
                case TextEnded():
                    self._close("text", now)
                case ToolCallReady():
                    self._close("call", now)
                case ToolCallCut(reason=reason):
                    self._close("call", now, reason)
                case _:
                    pass

    def _close(self, kind: SpanKind, now: float, cut: str = "") -> None:
        start = now if self._open < 0 else self._open
        if len(self.spans) < MOST_SPANS:
            self.spans.append(
                Span(kind, round(start, 4), round(now, 4), self._size, self._tool, "", cut)
            )
        self._open, self._size, self._tool = -1.0, 0, ""


def seen_in(row: Row, line: Line) -> None:
    """Add a turn that is over to its session."""
    row.last = max(row.last, line.at + line.seconds)
    row.harness = line.harness or row.harness
    row.model, row.api = line.model, line.api
    row.turns += 1
    row.failed += bool(line.failed)
    row.calls += sum(span.kind == "call" for span in line.spans)
    row.breaks += bool(line.broken)
    row.input += line.input
    row.cached += line.cached
    row.output += line.output
    row.seconds += line.seconds


def together(left: Row, right: Row) -> Row:
    """One session as two ingresses saw it."""
    late = left if left.last >= right.last else right
    return Row(
        session=left.session,
        key=left.key,
        owner=left.owner,
        first=min(left.first, right.first),
        last=late.last,
        harness=late.harness or left.harness or right.harness,
        model=late.model,
        api=late.api,
        turns=left.turns + right.turns,
        failed=left.failed + right.failed,
        calls=left.calls + right.calls,
        breaks=left.breaks + right.breaks,
        input=left.input + right.input,
        cached=left.cached + right.cached,
        output=left.output + right.output,
        seconds=left.seconds + right.seconds,
        live=left.live + right.live,
    )
