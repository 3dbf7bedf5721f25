"""What is remembered of the use of keys between two beats."""

from __future__ import annotations

import pytest

from access.caller import Caller
from access.keys import Allowance
from actors.allowances import Allowances
from turns.errors import RateLimitedError

CALLER = Caller(key="k", allowance=Allowance(tokens_per_minute=1000))


def test_the_tokens_of_a_turn_that_ran_for_minutes_count() -> None:
    now = 60_030.0
    allowances = Allowances(clock=lambda: now)
    allowances.enter(CALLER, "long")
    now += 130
    allowances.usages()
    allowances.leave("long", 1_000_000)
    assert allowances.usages()["k"].tokens == 1_000_000
    with pytest.raises(RateLimitedError):
        allowances.enter(CALLER, "next")
    now += 300
    assert allowances.usages() == {}
