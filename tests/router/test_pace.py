from __future__ import annotations

import pytest

from router.pace import Pace


@pytest.mark.parametrize(
    ("durations", "ahead", "active", "seconds"),
    [
        pytest.param([], 9, 4, 1, id="nothing known"),
        pytest.param([10.0], 0, 0, 1, id="nobody active"),
        pytest.param([10.0], 0, 4, 3, id="a quarter of a turn, rounded up"),
        pytest.param([10.0], 7, 4, 20, id="behind others"),
        pytest.param([0.2], 0, 64, 1, id="never under a second"),
        pytest.param([600.0], 9, 1, 60, id="never over a minute"),
        pytest.param([10.0, 20.0], 0, 1, 11, id="a running mean"),
        pytest.param([-5.0], 0, 1, 1, id="a clock that jumped back"),
    ],
)
def test_retry_after(durations: list[float], ahead: int, active: int, seconds: int) -> None:
    pace = Pace()
    for duration in durations:
        pace.ended(duration)
    assert pace.retry_after(ahead, active, [], 0.0) == seconds


@pytest.mark.parametrize(
    ("made", "ahead", "now", "seconds"),
    [
        pytest.param([0.0, 0.1, 0.2, 0.3], 0, 1.0, 9, id="all began together: the first to end"),
        pytest.param([0.0, 0.1, 0.2, 7.0], 3, 8.0, 10, id="behind the last to begin"),
        pytest.param([0.0, 2.5, 5.0, 7.5], 0, 8.0, 3, id="one after the other"),
        pytest.param([0.0, 0.1, 0.2, 0.3], 4, 1.0, 19, id="behind a second round"),
        pytest.param([0.0, 0.1, 0.2, 0.3], 0, 50.0, 3, id="longer than turns are: as at even pace"),
        pytest.param([0.0], 2, 1.0, 8, id="the others are not ours"),
    ],
)
def test_turns_that_began_together_end_together(
    made: list[float], ahead: int, now: float, seconds: int
) -> None:
    assert Pace(10.0).retry_after(ahead, 4, made, now) == seconds
