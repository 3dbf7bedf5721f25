from __future__ import annotations

import pytest

from router.scaling import Load, Targets, needed, steady

TARGETS = Targets(turns=0.5, kv_used=0.8, prefill_tokens=1000, calm_s=60)
IDLE = Load(0, 0.0, 0, 10)


@pytest.mark.parametrize(
    ("loads", "queued", "wanted"),
    [
        pytest.param([], 0, 1, id="no-word-yet"),
        pytest.param([IDLE] * 4, 0, 1, id="idle"),
        pytest.param([Load(5, 0.1, 0, 10)] * 2, 0, 2, id="on-target"),
        pytest.param([Load(9, 0.1, 0, 10)] * 2, 0, 4, id="turns"),
        pytest.param([Load(5, 0.1, 0, 10)] * 2, 20, 6, id="queue"),
        pytest.param([Load(1, 0.95, 0, 10)] * 4, 0, 5, id="kv"),
        pytest.param([Load(1, 0.1, 4000, 10), IDLE], 0, 4, id="prefill-backlog"),
        pytest.param([Load(9, 0.9, 9000, 10)] * 2, 0, 18, id="the-largest-holds"),
        pytest.param([Load(500, 0.4, 0, 0)] * 2, 0, 1, id="places-unbounded"),
    ],
)
def test_what_is_needed(loads: list[Load], queued: int, wanted: int) -> None:
    assert needed(loads, queued, TARGETS) == wanted


def test_up_goes_at_once_and_down_one_by_one_after_a_calm() -> None:
    assert steady(9, 4, 3.0, 100.0, TARGETS) == (9, None)
    number, since = steady(1, 4, None, 100.0, TARGETS)
    assert (number, since) == (4, 100.0)
    assert steady(1, 4, since, 159.0, TARGETS) == (4, 100.0)
    assert steady(1, 4, since, 160.0, TARGETS) == (3, 160.0)
    assert steady(3, 3, 160.0, 170.0, TARGETS) == (3, None)
