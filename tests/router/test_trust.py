from __future__ import annotations

import pytest

from router.trust import Trust


@pytest.mark.parametrize(
    ("promised", "found", "astray", "alarm"),
    [
        pytest.param(100, 100, 0, False, id="kept"),
        pytest.param(100, 90, 10, False, id="a-little-less"),
        pytest.param(100, 0, 100, True, id="promised-in-vain"),
        pytest.param(0, 100, 100, True, id="the-index-is-blind"),
    ],
)
def test_both_ways_of_being_wrong_alarm(
    promised: int, found: int, astray: int, alarm: bool
) -> None:
    trust = Trust()
    for _ in range(60):
        trust.saw(promised, found)
    assert (trust.astray, trust.alarm) == (astray, alarm)


def test_little_evidence_is_none() -> None:
    trust = Trust()
    for _ in range(10):
        trust.saw(100, 0)
        trust.saw(0, 0)  # no prefix was known and none was there: it says nothing
    assert not trust.alarm


def test_what_was_long_ago_fades() -> None:
    trust = Trust()
    for promised, found in [(100, 0)] * 50 + [(100, 100)] * 200:
        trust.saw(promised, found)
    assert not trust.alarm
