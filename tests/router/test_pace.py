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
    assert pace.retry_after(ahead, active) == seconds
