"""The official SDKs on a real server: what they stream, what they read whole, what comes next."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.served import Server
from tests.cluster import sdks
from tests.cluster.asks import APIS, tools
from tests.cluster.control import Control
from tests.cluster.sdks import Recorder, blocks, essence, request, stop
from tests.protocols.apis import problems

pytestmark = pytest.mark.ray
EACH = pytest.mark.parametrize("api", APIS)
SUM = {"expression": "15 * 23"}
SAYS: dict[str, list[tuple[Any, ...]]] = {
    "only text": [("text", 'Plain words: é, 🚀, "quotes" and a line\nbreak.')],
    "think first": [("think", "I think about it, twice.\n\nDone."), ("text", "The answer.")],
    "one call": [("call", "calculator", SUM | {"steps": ['a "b" <c>', "é\n"]})],
    "two calls": [
        ("think", "Both at once."),
        ("text", "I ask both."),
        ("call", "calculator", SUM),
        ("call", "weather", {"place": "Bergen"}),
    ],
    "think and call in turn": [
        ("think", "First the sum."),
        ("call", "calculator", {"expression": "1 + 1"}),
        ("think", "Then the weather."),
        ("call", "weather", {"place": "Oslo"}),
    ],
}
KIND = pytest.mark.parametrize("words", list(SAYS))
ENDS = {"messages": "end_turn", "responses": "completed", "chat": "stop"}
CALLS = {"messages": "tool_use", "responses": "completed", "chat": "tool_calls"}
LENGTHS = {"messages": "max_tokens", "responses": "max_output_tokens", "chat": "length"}


def said(api: str, answer: Any) -> list[tuple[Any, ...]]:
    """The content with arguments as values."""
    return [
        (kind, *rest[:-1], json.loads(rest[-1]) if isinstance(rest[-1], str) else rest[-1])
        if kind == "call"
        else (kind, *rest)
        for kind, *rest in blocks(api, answer)
    ]


def expected(api: str, words: str) -> list[tuple[Any, ...]]:
    """What it says; Chat has one place for reasoning, before all else."""
    told = SAYS[words]
    if api != "chat":
        return told
    thoughts = "\n\n".join(rest[0] for kind, *rest in told if kind == "think")
    rest = [one for one in told if one[0] != "think"]
    return [("think", thoughts), *rest] if thoughts else rest


def check(api: str, words: str, answer: Any, recorder: Recorder) -> None:
    assert said(api, answer) == expected(api, words)
    calls = any(kind == "call" for kind, *_ in SAYS[words])
    assert stop(api, answer) == (CALLS if calls else ENDS)[api]
    assert problems(api, recorder.raw) == []


@EACH
@KIND
def test_stream_helper_gives_what_the_model_said(server: Server, api: str, words: str) -> None:
    recorder = Recorder(server)
    body = request(api, words, tools=tools(api))
    answer = sdks.streamed(recorder, api, body)
    check(api, words, answer, recorder)
    assert essence(sdks.whole(recorder, api, body).to_dict()) == essence(answer.to_dict())


@EACH
@KIND
async def test_async_stream_helper_gives_the_same(server: Server, api: str, words: str) -> None:
    recorder = Recorder(server)
    answer = await sdks.async_streamed(recorder, api, request(api, words, tools=tools(api)))
    check(api, words, answer, recorder)


@EACH
def test_results_go_back_and_are_answered(server: Server, api: str) -> None:
    recorder = Recorder(server)
    body = request(api, "two calls", tools=tools(api))
    first = sdks.streamed(recorder, api, body)
    then = sdks.next_turn(api, body, first, ["345 it is", "rain, of course"])
    answer = sdks.streamed(recorder, api, then)
    told = "They said: 345 it is\nrain, of course"
    assert said(api, answer) == [("think", "The tools have answered."), ("text", told)]
    assert stop(api, answer) == ENDS[api]
    assert problems(api, recorder.raw) == []
    assert essence(sdks.whole(recorder, api, then).to_dict()) == essence(answer.to_dict())


@EACH
def test_answer_is_cut_at_max_tokens(server: Server, api: str) -> None:
    recorder = Recorder(server)
    body = request(api, "a long answer", max_tokens=30)
    answer = sdks.streamed(recorder, api, body)
    assert stop(api, answer) == LENGTHS[api]
    usage = answer.to_dict()["usage"]
    assert 30 in (usage.get("output_tokens"), usage.get("completion_tokens"))
    assert problems(api, recorder.raw) == []
    assert essence(sdks.whole(recorder, api, body).to_dict()) == essence(answer.to_dict())


@pytest.mark.parametrize(
    ("api", "field"),
    [
        pytest.param("messages", "stop_sequences", id="messages"),
        pytest.param("chat", "stop", id="chat"),
    ],
)
def test_answer_ends_before_the_stop_word(
    server: Server, control: Control, api: str, field: str
) -> None:
    recorder = Recorder(server)
    body = request(api, "stop word", **{field: ["HALT"]})
    answer = sdks.streamed(recorder, api, body)
    thought = "The stop word HALT does not count in here."
    assert said(api, answer) == [("think", thought), ("text", "Before it. ")]
    assert stop(api, answer) == {"messages": "stop_sequence", "chat": "stop"}[api]
    if api == "messages":
        assert answer.stop_sequence == "HALT"
    assert problems(api, recorder.raw) == []
    assert essence(sdks.whole(recorder, api, body).to_dict()) == essence(answer.to_dict())
    control.assert_idle()  # the engine would have run on
