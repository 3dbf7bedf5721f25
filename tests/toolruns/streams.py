"""Small streams for the tests: batches, budgets, scripts, and one script for every ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from toolruns.budget import Budget
from toolruns.contract import Cadence, Contract, Mode
from toolruns.endings import Ending
from toolruns.predicate.parse import parse
from toolruns.replay import Delivery, Fault, Replayed, Script, replay
from toolruns.signals import Chunk, Exhausted, Stop

BUDGET = Budget(
    rows=1000,
    bytes=1_000_000,
    tokens=4000,
    seconds=20.0,
    idle_seconds=5.0,
    yield_after=100.0,
    hold_seconds=30.0,
)


def budget(**changes: object) -> Budget:
    fields = {name: getattr(BUDGET, name) for name in BUDGET.__struct_fields__}
    return Budget(**{**fields, **changes})


def rows(count: int, start: int = 0) -> pa.RecordBatch:
    numbers = range(start, start + count)
    return pa.RecordBatch.from_pydict(
        {
            "user_id": pa.array([n % 17 for n in numbers], pa.int64()),
            "status": pa.array(["error" if n % 10 == 9 else "ok" for n in numbers]),
            "amount": pa.array([float(n) for n in numbers]),
        }
    )


def delivery(
    count: int, start: int = 0, *, took: float = 0.1, last: bool = False, size: int = 0
) -> Delivery:
    return Delivery(Chunk(rows(count, start), size or count * 24, last=last), took)


def stream(chunks: int, each: int = 32, *, took: float = 0.1, over: bool = True) -> list[Delivery]:
    made = [delivery(each, n * each, took=took) for n in range(chunks)]
    return [*made, Delivery(Exhausted(), took)] if over else made


def contract(mode: Mode, **changes: object) -> Contract:
    return Contract(mode, synopsis=Cadence(every_chunks=2, every_seconds=2.0), **changes)


def one_answer(took: float, count: int = 10) -> list[Delivery]:
    return [delivery(count, took=took, last=True)]


def upstream(mode: Mode, *, slow: bool = False) -> Sequence[Delivery]:
    """Deliveries as the mode has them; slow ones come after every limit of `BUDGET`."""
    took = 500.0 if slow else 0.1
    if mode == "request_response":
        return one_answer(took)
    return stream(8, took=took, over=mode != "unbounded")


def stopped_by(mode: Mode, ending: Ending) -> Replayed:
    script = Script(contract(mode), upstream(mode, slow=True), stops=[(3.0, Stop(ending))])
    return replay(script, budget(idle_seconds=100.0))


def _exhausted(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode)), BUDGET)


def _satisfied(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode)), BUDGET, until=parse("count >= 40"))


def _rows(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode)), budget(rows=8))


def _bytes(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode)), budget(bytes=200))


def _tokens(mode: Mode) -> Replayed:
    script = Script(contract(mode), upstream(mode, slow=True), legs=[None] * 9)
    return replay(script, budget(yield_after=1.0, tokens=1200, idle_seconds=100.0))


def _clock(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode, slow=True)), budget(idle_seconds=100.0))


def _inherited(mode: Mode) -> Replayed:
    tight = budget(seconds=3.0, origin="session")
    return replay(Script(contract(mode), upstream(mode, slow=True)), tight)


def _idle(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode, slow=True)), BUDGET)


def _disconnected(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode)), BUDGET, fault=Fault("disconnect", 0))


def _unclaimed(mode: Mode) -> Replayed:
    script = Script(contract(mode), upstream(mode, slow=True))
    return replay(script, budget(yield_after=1.0))


def _failed(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode)), BUDGET, fault=Fault("error", 0))


def _truncated(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode)), BUDGET, fault=Fault("drop", 0))


def _invalid(mode: Mode) -> Replayed:
    return replay(Script(contract(mode), upstream(mode)), BUDGET, until=parse("sum(price) > 1"))


SCENARIOS: dict[Ending, Callable[[Mode], Replayed]] = {
    Ending.EXHAUSTED: _exhausted,
    Ending.PREDICATE_SATISFIED: _satisfied,
    Ending.BUDGET_ROWS: _rows,
    Ending.BUDGET_BYTES: _bytes,
    Ending.BUDGET_TOKENS: _tokens,
    Ending.BUDGET_WALL_CLOCK: _clock,
    Ending.DEADLINE_INHERITED: _inherited,
    Ending.IDLE_TIMEOUT: _idle,
    Ending.CLIENT_DISCONNECTED: _disconnected,
    Ending.HANDLE_CLOSED: _unclaimed,
    Ending.UPSTREAM_ERROR: _failed,
    Ending.UPSTREAM_TRUNCATED: _truncated,
    Ending.PREDICATE_INVALID: _invalid,
}
"""A script for each ending; those decided outside come as a `Stop` (`stopped_by`)."""


def play(mode: Mode, ending: Ending) -> Replayed:
    return SCENARIOS[ending](mode) if ending in SCENARIOS else stopped_by(mode, ending)
