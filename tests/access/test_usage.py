from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from access.keys import Allowance
from access.usage import Usage, admit, entered, left, rolled
from turns.errors import RateLimitedError

NOW = 6_000.0
"""The beginning of a minute."""


def asked(times: int, *, at: float = NOW) -> Usage:
    usage = Usage()
    for _ in range(times):
        usage = left(entered(usage, at), 0, at)
    return usage


def wait(allowed: Allowance, usage: Usage, now: float) -> int:
    try:
        admit(allowed, [usage], now)
    except RateLimitedError as error:
        return error.retry_after
    return 0


def test_requests_are_counted_and_slide_out() -> None:
    allowed = Allowance(requests_per_minute=4)
    assert wait(allowed, asked(3), NOW) == 0
    assert wait(allowed, asked(4), NOW + 1) > 0
    assert wait(allowed, asked(4), NOW + 61) > 0  # nearly all of them still count
    assert wait(allowed, asked(4), NOW + 76) == 0  # a quarter has slid out
    assert wait(allowed, asked(4), NOW + 120) == 0


def test_tokens_are_counted_when_a_turn_is_over() -> None:
    allowed = Allowance(tokens_per_minute=100)
    usage = entered(Usage(), NOW)
    assert wait(allowed, usage, NOW) == 0
    assert wait(allowed, left(usage, 99, NOW), NOW) == 0
    assert wait(allowed, left(usage, 100, NOW), NOW) > 0


def test_turns_are_counted_while_they_run() -> None:
    allowed = Allowance(concurrent_turns=1)
    usage = entered(Usage(), NOW)
    assert wait(allowed, usage, NOW) == 1
    assert wait(allowed, usage, NOW + 3600) == 1  # a long turn does not slide out
    assert wait(allowed, left(usage, 0, NOW), NOW) == 0


def test_other_ingresses_count_too() -> None:
    allowed = Allowance(requests_per_minute=4)
    admit(allowed, [asked(1), asked(2)], NOW)
    with pytest.raises(RateLimitedError, match="4 times a minute"):
        admit(allowed, [asked(2), asked(2)], NOW)


def test_an_ingress_whose_clock_is_behind_still_counts() -> None:
    ahead = asked(4, at=NOW + 60)
    assert rolled(ahead, NOW + 59) == ahead
    assert wait(Allowance(requests_per_minute=4), ahead, NOW + 59) > 0


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 50),
    st.lists(st.floats(0, 150), min_size=1, max_size=80),
    st.sampled_from(["requests_per_minute", "tokens_per_minute"]),
)
def test_who_waits_as_long_as_told_is_let_in_and_no_window_is_over(
    most: int, times: list[float], what: str
) -> None:
    allowed = Allowance(**{what: most})
    usage, let_in = Usage(), []
    for moment in sorted(times):
        now = NOW + moment
        seconds = wait(allowed, usage, now)
        if not seconds:
            usage = left(entered(usage, now), 1, now)
            let_in.append(now)
        else:
            assert wait(allowed, usage, now + seconds) == 0
    for minute in range(4):  # a minute's own count is never over
        start = NOW + 60 * minute
        assert sum(start <= moment < start + 60 for moment in let_in) <= most
