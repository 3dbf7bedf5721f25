from __future__ import annotations

import pytest

from actors.pace import Pace
from turns.events import Event, TextDelta, ToolCallReady, TurnStarted


def test_gaps_and_leads_are_measured_between_batches() -> None:
    times = iter([10.0, 10.5, 12.5, 13.0])
    pace = Pace(lambda: next(times))
    ready = ToolCallReady(0, "{}")
    batches: list[list[Event]] = [
        [TurnStarted(1, 0)],
        [TextDelta("a"), ready],
        [TextDelta("b"), TextDelta("c")],
        [ready],
    ]
    for batch in batches:
        pace.step(batch)
    assert pace.gap() == pytest.approx(1.0)
    assert pace.longest() == 2.0
    assert [pace.lead(0), pace.lead(1), pace.lead(2)] == [2.5, 0.0, -1.0]


def test_one_batch_has_no_gap() -> None:
    pace = Pace()
    assert (pace.gap(), pace.longest(), pace.lead(0)) == (-1.0, -1.0, -1.0)
    pace.step([TurnStarted(1, 0)])
    assert (pace.gap(), pace.longest()) == (-1.0, -1.0)
