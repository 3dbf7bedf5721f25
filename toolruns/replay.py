"""Run a recorded stream again, on a clock that only moves when something is due.

The same machine as in life: another predicate, another budget or a fault gives what would have
happened. Nothing waits, so a day of stream replays in milliseconds, and always alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, field

from toolruns.budget import Budget
from toolruns.contract import Contract
from toolruns.decisions import Pace
from toolruns.endings import Ending
from toolruns.machine import ToolRun
from toolruns.predicate.syntax import Predicate
from toolruns.signals import (
    Chunk,
    Continue,
    Decide,
    Decided,
    Exhausted,
    Failed,
    Note,
    Pull,
    Return,
    Signal,
    Stop,
    Tick,
    Truncated,
    Yield,
)
from toolruns.trajectory import Entry, Recorder

MAX_STEPS = 100_000


class Delivery(Struct, frozen=True):
    """What upstream answered to a pull, `took` seconds after it."""

    signal: Chunk | Exhausted | Truncated | Failed
    took: float = 0.0


class Fault(Struct, frozen=True):
    """Something that goes wrong at the `at`-th delivery (from 0).

    `drop`: the source says it cut its answer there. `stall`: it takes `seconds` longer. `error`: it
    fails. `disconnect`: the client leaves.
    """

    kind: Literal["drop", "stall", "error", "disconnect"]
    at: int
    seconds: float = 3600.0


class Script(Struct, frozen=True):
    """A stream as it was: deliveries in order, then silence.

    `stops` come from outside at a time; `legs` are the budgets of the `Continue`s that answer
    yields, `None` for one with the first budget; `verdicts` answer decision rounds.
    """

    contract: Contract
    deliveries: Sequence[Delivery]
    stops: Sequence[tuple[float, Stop]] = ()
    legs: Sequence[Budget | None] = ()
    verdicts: Sequence[Decided] = ()


class Replayed(Struct):
    """What happened: the record, the last snapshot, the pulls asked for and the yields' times."""

    entries: list[Entry]
    ending: Ending | None = None
    view: dict[str, Any] = field(default_factory=dict)
    pulls: list[int] = field(default_factory=list)
    yields: list[float] = field(default_factory=list)
    ended_at: float = 0.0


def replay(
    script: Script,
    budget: Budget,
    *,
    until: Predicate | None = None,
    fault: Fault | None = None,
    checkpoint: bool = False,
    pace: Pace | None = None,
) -> Replayed:
    """Run the script to its end. Raises RuntimeError if the run would never end."""
    run = ToolRun(
        "trj_replay", script.contract, budget, until=until, checkpoint=checkpoint, pace=pace
    )
    return _Stage(script, run, fault, budget).play()


class _Stage:
    """The clock and what is due on it."""

    def __init__(self, script: Script, run: ToolRun, fault: Fault | None, budget: Budget) -> None:
        self._run = run
        self._fault = fault
        self._budget = budget
        self._now = 0.0
        self._coming = list(script.deliveries)
        self._delivered = 0
        self._due: tuple[float, Signal] | None = None
        self._stops = sorted(script.stops, key=lambda stop: stop[0])
        self._legs = list(script.legs)
        self._verdicts = list(script.verdicts)
        self._answers: list[Signal] = []
        self._recorder = Recorder(run.handle, 0.0)
        self._result = Replayed([])

    def play(self) -> Replayed:
        self._carry_out(self._run.open(self._now))
        for _ in range(MAX_STEPS):
            if self._run.state == "ended":
                self._result.ended_at = self._now
                return self._result
            self._carry_out(self._run.feed(self._next(), self._now))
        message = f"no end after {MAX_STEPS} steps"
        raise RuntimeError(message)

    def _next(self) -> Signal:
        """What comes first: an answer, a stop, the source, or the run's own alarm."""
        if self._answers:
            return self._answers.pop(0)
        wake = self._run.wake_at()
        held = self._run.state == "yielded"  # what the source says meanwhile waits
        source = self._due[0] if self._due and not held else float("inf")
        stop = self._stops[0][0] if self._stops else float("inf")
        self._now = max(self._now, min(wake, source, stop))
        if stop <= self._now:
            return self._stops.pop(0)[1]
        if self._due and source <= self._now:
            signal, self._due = self._due[1], None
            return signal
        return Tick()

    def _carry_out(self, actions: Sequence[Any]) -> None:
        for action in actions:
            match action:
                case Note():
                    self._result.entries.append(self._recorder.record(action, self._now))
                case Pull(rows):
                    self._result.pulls.append(rows)
                    self._pull()
                case Decide() if self._verdicts:
                    self._answers.append(self._verdicts.pop(0))
                case Yield(snapshot):
                    self._result.yields.append(self._now)
                    self._result.view = snapshot
                    if self._legs:
                        self._answers.append(Continue(self._legs.pop(0) or self._budget))
                case Return(snapshot, ending):
                    self._result.view, self._result.ending = snapshot, ending
                case _:
                    pass

    def _pull(self) -> None:
        fault = self._fault if self._fault and self._fault.at == self._delivered else None
        if not self._coming and fault is None:
            return
        delivery = self._coming.pop(0) if self._coming else Delivery(Exhausted())
        self._delivered += 1
        at, signal = self._now + delivery.took, delivery.signal
        match fault:
            case Fault(kind="stall", seconds=seconds):
                at += seconds
            case Fault(kind="drop"):
                signal = Truncated("the source cut its answer")
            case Fault(kind="error"):
                signal = Failed("the source failed")
            case Fault(kind="disconnect"):
                self._stops.insert(0, (at, Stop(Ending.CLIENT_DISCONNECTED)))
            case _:
                pass
        self._due = (at, signal)


def coverage(cells: set[tuple[str, str]], reachable: Sequence[tuple[str, str]]) -> str:
    """A table of endings (rows) by modes (columns): `x` reached, `.` not, blank: cannot happen."""
    modes = list(dict.fromkeys(mode for mode, _ in reachable))
    endings = list(dict.fromkeys(ending for _, ending in reachable))
    width = max(len(ending) for ending in endings)
    lines = [" " * width + "  " + "  ".join(modes)]
    for ending in endings:
        marks = []
        for mode in modes:
            mark = " "
            if (mode, ending) in reachable:
                mark = "x" if (mode, ending) in cells else "."
            marks.append(mark.center(len(mode)))
        lines.append(f"{ending.ljust(width)}  {'  '.join(marks).rstrip()}")
    reached = sum(1 for cell in reachable if cell in cells)
    lines.append(f"{reached} of {len(reachable)} reachable cells")
    return "\n".join(lines)
