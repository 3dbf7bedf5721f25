from __future__ import annotations

import json
from typing import Any

import pytest

from actors.engines.vllm.sampling import check_prompt, constraint_fields, sampling_fields
from turns.errors import ContextTooLongError, EngineError, InvalidRequestError
from turns.frames import Job, ParseSpec
from turns.turn import Sampling


def fields(
    sampling: Sampling, *, room: int = 100, defaults: dict[str, Any] | None = None
) -> dict[str, Any]:
    work = Job("t", [1], sampling, ParseSpec("f", ""), stop_ids=(2, 3))
    return sampling_fields(work, room, defaults or {})


def test_what_is_not_said_is_left_to_the_model() -> None:
    assert fields(Sampling()) == {"max_tokens": 100, "stop_token_ids": [2, 3]}
    told = fields(Sampling(), defaults={"temperature": 0.6, "top_k": 20})
    assert (told["temperature"], told["top_k"]) == (0.6, 20)


def test_what_is_said_wins_over_the_model_and_zero_counts_as_said() -> None:
    told = fields(Sampling(temperature=0.0, seed=0), defaults={"temperature": 0.6})
    assert (told["temperature"], told["seed"]) == (0.0, 0)


@pytest.mark.parametrize(
    ("wanted", "default", "limit"),
    [
        pytest.param(None, None, 100, id="room"),
        pytest.param(7, None, 7, id="said"),
        pytest.param(700, None, 100, id="clipped"),
        pytest.param(None, 50, 50, id="models-default"),
        pytest.param(60, 50, 60, id="said-over-default"),
    ],
)
def test_max_tokens(wanted: int | None, default: int | None, limit: int) -> None:
    defaults = {} if default is None else {"max_tokens": default}
    assert fields(Sampling(max_tokens=wanted), defaults=defaults)["max_tokens"] == limit


def test_max_tokens_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        fields(Sampling(max_tokens=0))
    assert caught.value.param == "max_tokens"


def test_later_leg_draws_anew_and_says_no_more_than_is_left() -> None:
    work = Job("t~1", [1, 7, 8], Sampling(seed=5), ParseSpec("f", ""), resumed=2)
    told = sampling_fields(work, 100, {"max_tokens": 50})
    assert (told["seed"], told["max_tokens"]) == (7, 48)


def test_later_leg_of_a_bound_turn_is_refused() -> None:
    bound = {"json": {"type": "object"}}
    work = Job("t~1", [1, 7], Sampling(), ParseSpec("f", ""), constraint=bound, resumed=1)
    with pytest.raises(EngineError, match="send it again"):
        sampling_fields(work, 100, {})


def test_stop_strings_never_reach_the_engine() -> None:
    assert "stop" not in fields(Sampling(stop=("END",)))


def test_room_behind_a_prompt() -> None:
    assert check_prompt([1] * 30, vocab_size=2, max_model_len=32) == 2


def test_the_longest_prompt_leaves_one_token() -> None:
    assert check_prompt([0] * 31, vocab_size=2, max_model_len=32) == 1
    with pytest.raises(ContextTooLongError) as caught:
        check_prompt([0] * 32, vocab_size=2, max_model_len=32)
    assert (caught.value.tokens, caught.value.limit) == (32, 31)


def test_a_structural_tag_travels_as_text() -> None:
    tag = {"type": "structural_tag", "format": {"type": "any_text"}}
    assert json.loads(constraint_fields({"structural_tag": tag})["structural_tag"]) == tag
    assert constraint_fields({"structural_tag": "{}"}) == {"structural_tag": "{}"}


@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param({"jsn": {}}, id="unknown"),
        pytest.param({"json": {}, "regex": "a"}, id="two"),
        pytest.param({}, id="none"),
    ],
)
def test_other_constraints_are_refused(constraint: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="structural_tag"):
        constraint_fields(constraint)
