from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolruns.budget import Harness, Purse, Wish, grant, share, tokens_of
from toolruns.contract import Defaults

DEFAULTS = Defaults()
PATIENT = Harness("test", timeout=1000.0)


def test_the_contract_decides_when_nobody_says_anything():
    budget = grant(DEFAULTS)
    assert (budget.seconds, budget.rows, budget.origin) == (20.0, 100_000, "default")
    assert budget.yield_after == 10.0


def test_a_wish_replaces_the_default():
    budget = grant(DEFAULTS, wish=Wish(max_rows=5, max_seconds=90.0), harness=PATIENT)
    assert (budget.rows, budget.seconds, budget.origin) == (5, 90.0, "argument")
    assert budget.yield_after == 800.0


@pytest.mark.parametrize("timeout", [8.0, 60.0])
def test_a_leg_yields_before_the_harness_gives_up(timeout):
    budget = grant(DEFAULTS, wish=Wish(max_seconds=500.0), harness=Harness("codex", timeout))
    assert budget.yield_after == pytest.approx(timeout * 0.8)


def test_the_sessions_deadline_binds_and_is_named():
    budget = grant(DEFAULTS, wish=Wish(max_seconds=90.0), purse=Purse(deadline=12.0))
    assert (budget.seconds, budget.origin) == (12.0, "session")


def test_a_wish_tighter_than_the_session_stays_a_wish():
    assert (
        grant(DEFAULTS, wish=Wish(max_seconds=2.0), purse=Purse(deadline=12.0)).origin == "argument"
    )


@pytest.mark.parametrize(
    ("left", "further", "concurrent", "seconds"),
    [
        pytest.param(30.0, 0.0, 1, 30.0, id="last-call"),
        pytest.param(30.0, 2.0, 1, 10.0, id="two-more"),
        pytest.param(30.0, 2.0, 5, 2.0, id="split"),
        pytest.param(30.0, 99.0, 1, 1.0, id="floor"),
        pytest.param(0.4, 99.0, 1, 0.4, id="less-than-the-floor-is-left"),
        pytest.param(-3.0, 0.0, 1, 0.0, id="deadline-passed"),
    ],
)
def test_deadline_decays_over_the_calls_to_come(left, further, concurrent, seconds):
    assert share(left, further, concurrent) == pytest.approx(seconds)


@given(
    left=st.floats(0, 1e4),
    further=st.floats(0, 100),
    more=st.floats(0, 100),
    concurrent=st.integers(1, 9),
)
def test_more_calls_to_come_never_grant_more(left, further, more, concurrent):
    assert 0 <= share(left, further + more, concurrent) <= share(left, further, concurrent) <= left


def test_little_context_makes_small_synopses():
    budget = grant(DEFAULTS, purse=Purse(context=8000))
    assert budget.synopsis_bytes == 640
    assert budget.tokens == 2000
    assert grant(DEFAULTS, purse=Purse(context=100)).synopsis_bytes == 96 * 4
    assert grant(DEFAULTS, purse=Purse(context=10**6)).synopsis_bytes == 2048


def test_a_task_budget_is_not_eaten_by_one_call():
    assert grant(DEFAULTS, purse=Purse(task_tokens=4000)).tokens == 1000


def test_tokens_are_rounded_up():
    assert [tokens_of(n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
