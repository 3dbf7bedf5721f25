"""The machine of one streaming tool call. Signals in, actions out; it never waits and never reads.

Four states. `HANDLERS` says what each signal means in each of them; a missing entry is a mistake of
the caller. Everything about the life of a run is decided here: when to ask for more, what to show,
when it yields, why it ends. Whoever runs it only carries out the actions, in order.

    new ──open──> running ──Stop, Chunk, Tick …──> ended
                   │   ▲
             Yield │   │ Continue
                   ▼   │
                  yielded ──Stop, Tick──> ended
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from toolruns.arrays import plain
from toolruns.budget import Budget, tokens_of
from toolruns.contract import Contract
from toolruns.decisions import Pace
from toolruns.endings import EXTERNAL, Ending
from toolruns.judge import Judge
from toolruns.leg import Leg
from toolruns.predicate.syntax import Predicate, PredicateError
from toolruns.predicate.watch import Moment
from toolruns.signals import (
    Action,
    Chunk,
    Close,
    Continue,
    Decide,
    Decided,
    EventType,
    Exhausted,
    Failed,
    Keep,
    Note,
    Open,
    Pull,
    Return,
    Show,
    Signal,
    Stop,
    Tick,
    Truncated,
    Yield,
)
from toolruns.snapshot import snapshot, watched

State = Literal["new", "running", "yielded", "ended"]

FIRST_PULL = 32
LARGEST_PULL = 8192
"""Pulls double from the first to the largest: a stop at row 30 costs 32 rows, a scan stays fast."""
CLOCK_STEP = 0.1
"""How often a predicate about time is looked at between chunks, in seconds."""


class RunOrderError(RuntimeError):
    """A signal came that cannot come in this state: nothing happens after the end."""


class ToolRun:
    """One call of a streaming tool, from `open` to its one `Return`.

    `now` is any clock that does not go back, in seconds; the same one throughout.
    """

    def __init__(
        self,
        handle: str,
        contract: Contract,
        budget: Budget,
        *,
        until: Predicate | None = None,
        checkpoint: bool = False,
        pace: Pace | None = None,
        seed: int = 0,
    ) -> None:
        self.handle = handle
        self.contract = contract
        self.leg = Leg(budget, 0.0)
        self.state: State = "new"
        self.ending: Ending | None = None
        self.error = ""
        self.cursor = ""
        self.rows = self.chunks = self.pages = self.bytes = self.tokens = 0
        self.judge = Judge(contract, until, seed)
        self._pace = pace or Pace()
        self._checkpoint = checkpoint
        self._out: list[Action] = []
        self._opened = False
        self._pulling = False
        self._next_pull = FIRST_PULL
        self._active = 0.0
        self._held_since = self._shown_at = self._rows_at = self._last_tick = 0.0
        self._shown_chunks = self._shows = 0

    def open(self, now: float) -> list[Action]:
        """Begin. Without time or rows to spend the run ends before its upstream is opened."""
        if self.state != "new":
            message = "a run opens once"
            raise RunOrderError(message)
        self.state = "running"
        self._note("trajectory.opened", mode=self.contract.mode, until=self.judge.until)
        self._begin_leg(self.leg.budget, now)
        if self.leg.budget.seconds <= 0:
            self._end(self.leg.clock_ending(), now)
        else:
            self._opened = True
            self._out.append(Open())
            self._pull()
        return self._take_out()

    def feed(self, signal: Signal, now: float) -> list[Action]:
        """What follows from a signal. Raises RunOrderError if it cannot come in this state."""
        handler = HANDLERS.get((self.state, type(signal)))
        if handler is None:
            message = f"{type(signal).__name__} cannot come when a run is {self.state}"
            raise RunOrderError(message)
        handler(self, signal, now)
        return self._take_out()

    def wake_at(self) -> float:
        """When to send the next `Tick`, if nothing else comes before; infinite after the end."""
        if self.state == "yielded":
            return self._held_until
        if self.state != "running":
            return float("inf")
        wake = min(self.leg.ends_at, self.leg.yields_at, self._show_at, self._idle_at)
        if self.judge.clocked:
            wake = min(wake, self._last_tick + CLOCK_STEP)
        return wake

    @property
    def _show_at(self) -> float:
        return self._shown_at + self.contract.synopsis.every_seconds

    @property
    def _idle_at(self) -> float:
        if self.contract.mode == "request_response":
            return float("inf")
        return self._rows_at + self.leg.budget.idle_seconds

    @property
    def _held_until(self) -> float:
        return self._held_since + self.leg.budget.hold_seconds

    def elapsed(self, now: float) -> float:
        """Seconds that the run was at work; the time it was held after a yield does not count."""
        return self._active + (self.leg.spent(now) if self.state == "running" else 0.0)

    def on_chunk(self, chunk: Chunk, now: float) -> None:
        self._pulling = False
        batch = plain(chunk.batch)
        rows, room = batch.num_rows, self.leg.room
        cut = rows > room
        size = chunk.size if not cut else chunk.size * room // rows
        batch = batch.slice(0, room) if cut else batch
        self._count(batch.num_rows, size, chunk, now)
        if batch.num_rows:
            self._out.append(Keep(batch, self.chunks))
        self._note("chunk.received", rows=batch.num_rows, bytes=size, pages=chunk.pages)
        try:
            held = self.judge.take(batch, self._moment(now))
        except PredicateError as error:
            self._unfit(error, now)
            return
        mode = self.contract.mode
        whole = mode == "request_response" or (chunk.last and not (mode == "unbounded" and held))
        if whole and not cut:
            self._end(self._over(), now)
        elif held:
            self._satisfied(now)
        elif over := self.leg.overspent():
            self._end(over, now)
        else:
            self._go_on(now)

    def _satisfied(self, now: float) -> None:
        self._note("predicate.satisfied", row=self.judge.satisfied_at, until=self.judge.until)
        self._end(Ending.PREDICATE_SATISFIED, now)

    def _go_on(self, now: float) -> None:
        """A busy source must not outrun the clock, so the clock is looked at here too."""
        self._look_at_clock(now)
        shown = self.chunks - self._shown_chunks
        if self.state == "running" and shown >= self.contract.synopsis.every_chunks:
            self._show(now)
        if self.state == "running":
            self._pull()

    def _unfit(self, error: PredicateError, now: float) -> None:
        self.error = str(error)
        self._end(Ending.PREDICATE_INVALID, now)

    def on_exhausted(self, signal: Exhausted, now: float) -> None:
        self._end(self._over(), now)

    def _over(self) -> Ending:
        """What it means that the source says there is no more."""
        if self.contract.mode == "unbounded":
            self.error = "the source closed a stream that has no end"
            return Ending.UPSTREAM_TRUNCATED
        return Ending.EXHAUSTED

    def on_truncated(self, signal: Truncated, now: float) -> None:
        self.error = signal.note
        self._end(Ending.UPSTREAM_TRUNCATED, now)

    def on_failed(self, signal: Failed, now: float) -> None:
        self.error = signal.message
        self._note("error.raised", message=signal.message)
        self._end(Ending.UPSTREAM_ERROR, now)

    def on_tick(self, signal: Tick, now: float) -> None:
        self._last_tick = now
        self._look_at_clock(now)

    def _look_at_clock(self, now: float) -> None:
        # The one answer of a plain call is bounded by the wall clock alone.
        stream = self.contract.mode != "request_response"
        if now >= self.leg.ends_at:
            self._end(self.leg.clock_ending(), now)
        elif stream and self.judge.clocked and self.judge.holds(self._moment(now)):
            self._satisfied(now)
        elif now >= self._idle_at:
            self._end(Ending.IDLE_TIMEOUT, now)
        elif now >= self.leg.yields_at:
            self._yield(now)
        else:
            for name, share in self.leg.warnings(now):
                self._note("budget.warned", limit=name, share=round(share, 2))
            if now >= self._show_at:
                self._show(now)

    def on_stop(self, signal: Stop, now: float) -> None:
        if signal.ending not in EXTERNAL:
            message = f"{signal.ending} is decided by the run itself"
            raise RunOrderError(message)
        self.error = signal.note
        self._end(signal.ending, now)

    def on_decided(self, signal: Decided, now: float) -> None:
        self._pace.answered(signal.latency)
        self._note("decision.made", verdict=signal.verdict, latency_s=round(signal.latency, 3))
        if signal.verdict == "stop":
            self._end(Ending.MODEL_STOPPED, now)
        elif signal.verdict == "refine" and signal.until is not None:
            self._refine(signal.until, signal.past, now)

    def _refine(self, until: Predicate, past: tuple[Any, ...], now: float) -> bool:
        """A new predicate over the whole stream. False when the run ended with it."""
        try:
            held = self.judge.replace(until, past, self._moment(now))
        except PredicateError as error:
            self._unfit(error, now)
            return False
        if held:
            self._satisfied(now)
        return not held

    def on_continue(self, signal: Continue, now: float) -> None:
        self.state = "running"
        self._checkpoint = signal.checkpoint
        self._note("trajectory.resumed")
        self._begin_leg(signal.budget, now)
        if signal.until is not None and not self._refine(signal.until, signal.past, now):
            return
        if signal.budget.seconds <= 0:
            self._end(self.leg.clock_ending(), now)
        else:
            self._pull()

    def on_held(self, signal: Tick, now: float) -> None:
        if now >= self._held_until:
            self.error = "nobody went on with it"
            self._note("handle.expired")
            self._end(Ending.HANDLE_CLOSED, now)

    def _show(self, now: float) -> None:
        view = snapshot(self, now, self._shows)
        self._shown_at, self._shown_chunks = now, self.chunks
        self._shows += 1
        seen = {"rows": self.rows, "verdict": view["verdict"], "columns": watched(view)}
        self._note("synopsis.emitted", **seen)
        self._out.append(Show(view))
        demanded = self._checkpoint and self._pace.when == "on_demand"
        if self._pace.due(now, view["verdict"], demanded=demanded):
            if self._pay_tokens(now):
                self._pace.asked(now, view["verdict"])
                self._note("decision.requested", rows=self.rows, verdict=view["verdict"])
                self._out.append(Decide(view))
        elif self._checkpoint and not demanded:
            self._yield(now)

    def _yield(self, now: float) -> None:
        if not self._pay_tokens(now):
            return
        self._active += self.leg.spent(now)
        self.state = "yielded"
        self._held_since = now
        self._note("trajectory.yielded", rows=self.rows)
        self._out.append(Yield(snapshot(self, now, self._shows)))

    def _pay_tokens(self, now: float) -> bool:
        """Count one more synopsis that the model reads; ends the run when it may read no more."""
        cost = tokens_of(self.leg.budget.synopsis_bytes)
        if self.tokens + cost > self.leg.budget.tokens:
            self._end(Ending.BUDGET_TOKENS, now)
            return False
        self.tokens += cost
        return True

    def _end(self, ending: Ending, now: float) -> None:
        self._active = self.elapsed(now)
        self.state, self.ending = "ended", ending
        if self._opened:
            self._out.append(Close())
        view = snapshot(self, now, self._shows)
        ended = {"reason": str(ending), "rows": self.rows, "columns": watched(view)}
        self._note("trajectory.terminated", **ended)
        self._out.append(Return(view, ending))

    def _begin_leg(self, budget: Budget, now: float) -> None:
        self.leg = Leg(budget, now)
        self._shown_at = self._rows_at = self._last_tick = now

    def _count(self, rows: int, size: int, chunk: Chunk, now: float) -> None:
        self.chunks += 1
        self.pages += chunk.pages
        self.rows += rows
        self.bytes += size
        self.leg.count(rows, size)
        self.cursor = chunk.cursor or self.cursor
        if rows:
            self._rows_at = now

    def _pull(self) -> None:
        if not self._pulling:
            self._pulling = True
            self._out.append(Pull(max(1, min(self._next_pull, self.leg.room))))
            self._next_pull = min(LARGEST_PULL, self._next_pull * 2)

    def _moment(self, now: float) -> Moment:
        idle = now - self._rows_at
        return Moment(self.chunks, self.pages, self.bytes, self.elapsed(now), idle)

    def _note(self, type_: EventType, **data: Any) -> None:
        self._out.append(Note(type_, data))

    def _take_out(self) -> list[Action]:
        out, self._out = self._out, []
        return out


HANDLERS: dict[tuple[State, type[Signal]], Callable[[ToolRun, Any, float], None]] = {
    ("running", Chunk): ToolRun.on_chunk,
    ("running", Exhausted): ToolRun.on_exhausted,
    ("running", Truncated): ToolRun.on_truncated,
    ("running", Failed): ToolRun.on_failed,
    ("running", Tick): ToolRun.on_tick,
    ("running", Stop): ToolRun.on_stop,
    ("running", Decided): ToolRun.on_decided,
    ("yielded", Tick): ToolRun.on_held,
    ("yielded", Stop): ToolRun.on_stop,
    ("yielded", Continue): ToolRun.on_continue,
    ("yielded", Decided): ToolRun.on_decided,
}
"""What a signal means in a state. What a source says after a yield waits for `Continue`."""
