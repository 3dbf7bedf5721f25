"""The dispatch side channel: opt-in, once per complete call, invisible to clients."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from hypothesis import given, settings

from tests.protocols import apis, legal
from tests.protocols.test_sdks import MODEL, SAY, claude, gpt
from turns.events import ReasoningEnded, ToolCallReady

EACH = pytest.mark.parametrize("api", apis.NAMES)
MODEST = settings(max_examples=40, deadline=None)
NAMES = ("tool_call_dispatch", "reasoning_dispatch")


def announcing(api: str, how: str, events: list[Any]) -> bytes:
    turn = apis.decode(api, {"x-treadle-dispatch": how}, stream=True)
    return apis.encoder(api, turn).encode(events)


@EACH
@MODEST
@given(events=legal.sequences())
def test_events_announce_each_complete_call_and_span_once(api: str, events: list[Any]) -> None:
    raw = announcing(api, "events", events)
    assert apis.problems(api, raw, NAMES) == []
    said = [data for name, data in apis.parse(raw) if name == NAMES[0]]
    ready = [event for event in events if isinstance(event, ToolCallReady)]
    assert [call["tool_call"]["index"] for call in said] == [event.index for event in ready]
    for call, event in zip(said, ready, strict=True):
        assert call["choice_index"] == 0
        spelled = call["tool_call"]
        if spelled["type"] == "function":
            assert spelled["function"]["arguments"] == event.arguments
    thoughts = [data for name, data in apis.parse(raw) if name == NAMES[1]]
    assert len(thoughts) == sum(isinstance(event, ReasoningEnded) for event in events)


@EACH
@MODEST
@given(events=legal.sequences())
def test_comments_leave_the_stream_as_it_was(api: str, events: list[Any]) -> None:
    raw = announcing(api, "comments", events)
    blocks = raw.split(b"\n\n")
    plain = b"\n\n".join(block for block in blocks if not block.startswith(b": "))
    assert plain == apis.stream(api, events)
    said = sum(block.startswith(b": tool_call_dispatch {") for block in blocks)
    assert said == sum(isinstance(event, ToolCallReady) for event in events)


@EACH
@pytest.mark.parametrize("asked", ["", "yes", "EVENT"])
def test_any_other_word_is_off(api: str, asked: str) -> None:
    assert apis.decode(api, {"x-treadle-dispatch": asked}).echo["dispatch"] == ""


@MODEST
@given(events=legal.sequences(cutting=False))
def test_sdks_read_over_announcements(events: list[Any]) -> None:
    for how in ("events", "comments"):
        sdk = claude(announcing("messages", how, events))
        with sdk.messages.stream(**MODEL, max_tokens=9, messages=SAY) as stream:
            stream.get_final_message()
        with gpt(announcing("responses", how, events)).responses.stream(**MODEL, input="x") as got:
            assert list(got)[-1].response.id == "resp_7f"
        try:
            raw = announcing("chat", how, events)
            with gpt(raw).chat.completions.stream(**MODEL, messages=SAY) as chunks:
                chunks.get_final_completion()
        except openai.LengthFinishReasonError:
            pass
