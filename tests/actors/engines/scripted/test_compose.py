from __future__ import annotations

from typing import Any

import pytest

from actors.engines.scripted.compose import Wire, script
from actors.engines.scripted.reply import plan
from actors.engines.scripted.scenario import read
from actors.engines.scripted.scene import look
from actors.engines.scripted.script import Fault, Pace, Script, until_stop
from tests.actors.engines.scripted.toy import END, ask, decode, encode, job, write
from turns.frames import Job
from turns.turn import Thinking, Turn

WIRE = Wire(write, encode)


def composed(items: list[Any], turn: Turn | None = None, *, room: int = 100, **rule: Any) -> Script:
    fields = {name: rule.pop(name) for name in ("tail", "thinking_budget") if name in rule}
    turn = turn or ask("hi")
    made: Job = job(turn, **fields)
    return script(
        plan(read({"rules": [{"reply": items, **rule}]}), look(turn)), made, WIRE, room=room
    )


def test_blocks_are_written_in_the_familys_syntax_and_stopped() -> None:
    made = composed([{"think": "hm"}, {"call": {"tool": "t", "arguments": {}}}])
    assert decode(made.ids) == '<think>hm</think><call>{"name":"t","arguments":{}}</call><end>'
    assert (made.finish, made.cuts, made.fault, made.pace) == ("stop", None, None, None)


def test_a_prompt_that_ends_inside_thinking_is_gone_on_with() -> None:
    assert (
        decode(composed([{"think": "hm"}, {"text": "a"}], tail="<think>").ids) == "hm</think>a<end>"
    )


def test_thinking_that_is_off_is_left_out() -> None:
    turn = ask("hi", thinking=Thinking("off"))
    assert decode(composed([{"think": "hm"}, {"text": "a"}], turn).ids) == "a<end>"


@pytest.mark.parametrize(
    ("budget", "thought"), [(0, ""), (4, "one"), (8, "one two"), (99, "one two 34")]
)
def test_thinking_keeps_to_its_budget(budget: int, thought: str) -> None:
    items = [{"think": "one two"}, {"think": " 34"}, {"text": "."}]
    made = decode(composed(items, thinking_budget=budget).ids)
    assert made.replace("<think>", "").replace("</think>", "") == f"{thought}.<end>"


def test_lorem_has_the_tokens_asked_for() -> None:
    assert 45 <= len(composed([{"lorem": 50}], stop_token=False).ids) <= 50
    words = Wire(write, lambda text: [len(word) for word in text.split()])
    assert words.count(words.words(50)) == 50


def test_an_endless_text_fills_the_room_and_more() -> None:
    made = composed([{"endless": "ab"}], room=5)
    assert decode(made.ids[:6]) == "ababab"


def test_deltas_are_encoded_apart_and_said_apart() -> None:
    made = composed([{"deltas": ["<th", "ink>", "", {"ids": [5, 6]}]}])
    assert made.cuts == [3, 7, 7, 9, 10]
    assert "<think>" not in [decode([one]) for one in made.ids]


def test_the_finish_may_come_on_an_empty_delta() -> None:
    made = composed([{"deltas": ["Hi", ""]}], stop_token=False)
    assert (made.cuts, made.finish) == ([2, 2], "stop")


def test_finish_length_has_no_stop_token() -> None:
    made = composed([{"text": "ab"}], finish="length")
    assert (decode(made.ids), made.finish) == ("ab", "length")


def test_a_stop_token_inside_ends_the_reply_there() -> None:
    made = composed([{"deltas": ["ab<end>", "cd"]}])
    assert (decode(made.ids), made.cuts) == ("ab<end>", [3])
    assert until_stop(Script([1, 2], "length"), (9,)).finish == "length"
    assert until_stop(Script([1, 9, 2], "length", fault=Fault("hang")), (9,)) == Script([1, 9])


def test_several_tokens_a_step() -> None:
    made = composed(
        [{"text": "abcdefg"}], tokens={"per_step": 3, "step_ms": 20, "first_after_ms": 5}
    )
    assert made.cuts == [3, 6, 8]
    assert made.pace == Pace(0.02, 0.005)


def test_faults_come_after_tokens() -> None:
    made = composed([{"text": "abc"}], fail_after={"tokens": 2, "message": "m"})
    assert (decode(made.ids), made.fault) == ("ab", Fault("fail", "m"))
    late = composed([{"text": "abc"}], crash_after=99)
    assert (decode(late.ids), late.fault) == ("abc", Fault("exit"))
    assert composed([{"text": "abc"}], fail_after=0).ids == []


def test_faults_come_after_deltas_where_they_are_cut_by_hand() -> None:
    made = composed([{"deltas": ["Hel", "lo"]}], fail_after=1)
    assert (decode(made.ids), made.cuts) == ("Hel", [3])
    assert composed([{"deltas": ["Hel"]}], fail_after=0).cuts == []


def test_what_the_cache_held_can_be_said_instead_of_counted() -> None:
    assert composed([{"text": "a"}], cached_tokens=900).cached == 900
    assert composed([{"text": "a"}]).cached is None


def test_encoding_is_done_once() -> None:
    texts: list[str] = []
    wire = Wire(write, lambda text: [texts.append(text) or 1])
    for _ in range(3):
        wire.encode("same")
    assert texts == ["same"]


def test_the_stop_token_is_the_jobs_first() -> None:
    assert composed([{"text": "a"}]).ids[-1] == END
