"""The official SDKs read every stream: their stream helpers, fed our bytes over a mock transport."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given, settings

from tests.protocols import apis, legal
from turns.events import TextDelta, TurnFailed, TurnStarted
from turns.reply import fold

FEW = settings(max_examples=25, deadline=None)
KEY = {"api_key": "k", "base_url": "http://treadle.test/v1", "max_retries": 0}
MODEL = {"model": "m"}
SAY = [{"role": "user", "content": "x"}]


def transport(raw: bytes, kind: str = "text/event-stream", status: int = 200) -> httpx2.Client:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=raw, headers={"content-type": kind})

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def claude(raw: bytes, *args: Any) -> anthropic.Anthropic:
    key = KEY | {"base_url": "http://treadle.test"}
    return anthropic.Anthropic(**key, http_client=transport(raw, *args))


def gpt(raw: bytes, *args: Any) -> openai.OpenAI:
    return openai.OpenAI(**KEY, http_client=transport(raw, *args))


def whole(api: str, events: list[Any], **fields: Any) -> bytes:
    return apis.encoder(api, **fields).whole(fold(events))[1]


@FEW
@given(events=legal.sequences(cutting=False))
def test_anthropic_streams_and_reads_the_same_message(events: list[Any]) -> None:
    sdk = claude(apis.stream("messages", events))
    with sdk.messages.stream(**MODEL, max_tokens=9, messages=SAY) as stream:
        streamed = stream.get_final_message()
    unary = claude(whole("messages", events), "application/json")
    read = unary.messages.create(**MODEL, max_tokens=9, messages=SAY)
    given_up = {"parsed_output"}
    assert streamed.model_dump(exclude_none=True, exclude={"content": {"__all__": given_up}}) == (
        read.model_dump(exclude_none=True)
    )


@FEW
@given(events=legal.sequences(cutting=False))
def test_openai_streams_and_reads_the_same_response(events: list[Any]) -> None:
    with gpt(apis.stream("responses", events)).responses.stream(**MODEL, input="x") as stream:
        streamed = list(stream)[-1].response  # an incomplete one is final here, too
    read = gpt(whole("responses", events), "application/json").responses.create(**MODEL, input="x")
    assert without_parsed(streamed) == without_parsed(read)


@FEW
@given(events=legal.sequences(cutting=False))
def test_openai_streams_and_reads_the_same_completion(events: list[Any]) -> None:
    sdk = gpt(apis.stream("chat", events))
    try:
        with sdk.chat.completions.stream(**MODEL, messages=SAY) as stream:
            streamed = stream.get_final_completion()
    except openai.LengthFinishReasonError as error:
        streamed = error.completion
    unary = gpt(whole("chat", events), "application/json")
    read = unary.chat.completions.create(**MODEL, messages=SAY)
    ours, theirs = streamed.choices[0], read.choices[0]
    assert ours.finish_reason == theirs.finish_reason
    assert ours.message.content == theirs.message.content
    assert ours.message.to_dict().get("reasoning_content") == (
        theirs.message.to_dict().get("reasoning_content")
    )
    assert said(ours.message) == said(theirs.message)
    assert streamed.usage == read.usage


def said(message: Any) -> list[tuple[str, str, str]]:
    calls = message.tool_calls or []
    return [(call.id, call.function.name, call.function.arguments) for call in calls]


def without_parsed(response: Any) -> Any:
    dumped = json.loads(response.to_json())
    for item in dumped["output"]:
        item.pop("parsed_arguments", None)
        for part in item.get("content") or ():
            part.pop("parsed", None)
    return dumped


DIED = [TurnStarted(5), TextDelta("Hel"), TurnFailed("engine", "the engine died")]


def test_anthropic_raises_on_a_stream_that_failed() -> None:
    sdk = claude(apis.stream("messages", DIED))
    with (
        sdk.messages.stream(**MODEL, max_tokens=9, messages=SAY) as stream,
        pytest.raises(anthropic.APIStatusError, match="the engine died"),
    ):
        stream.get_final_message()


def test_openai_raises_on_a_completion_that_failed() -> None:
    chunks = gpt(apis.stream("chat", DIED)).chat.completions.create(
        **MODEL, messages=SAY, stream=True
    )
    with pytest.raises(openai.APIError, match="the engine died"):
        list(chunks)


def test_openai_sees_a_response_that_failed() -> None:
    events = list(
        gpt(apis.stream("responses", DIED)).responses.create(**MODEL, input="x", stream=True)
    )
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.code == "server_error"
