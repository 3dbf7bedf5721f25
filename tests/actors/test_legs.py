"""How a turn goes on behind what it said."""

from __future__ import annotations

import pytest

from actors import legs
from turns.frames import Job, ParseSpec
from turns.turn import Sampling

JOB = Job("t", [1, 2], Sampling(max_tokens=3, seed=5), ParseSpec("f", "tail"), stop_ids=(9,))


def test_first_leg_is_the_job_itself() -> None:
    assert legs.leg(JOB, 0, []) is JOB
    assert legs.over(JOB) is None
    assert legs.said(JOB) == []


def test_later_leg_is_a_longer_prompt_and_fewer_tokens_to_say() -> None:
    leg = legs.leg(JOB, 2, [7, 8])
    assert (leg.turn, legs.turn_of(leg.turn)) == ("t~2", "t")
    assert (leg.prompt, leg.resumed, legs.said(leg)) == ([1, 2, 7, 8], 2, [7, 8])
    assert leg.sampling.max_tokens == 1
    assert leg.spec is JOB.spec
    assert legs.over(leg) is None


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        pytest.param([7, 9], "stop", id="the stop token had come"),
        pytest.param([7, 8, 6], "length", id="all tokens had come"),
    ],
)
def test_turn_whose_last_token_came_is_over(said: list[int], finish: str) -> None:
    assert legs.over(legs.leg(JOB, 1, said)) == finish


def test_leg_that_has_said_nothing_begins_anew() -> None:
    assert legs.over(legs.leg(JOB, 1, [])) is None
