"""Laws of the three encoders over every legal sequence of events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols import apis, clients, legal
from turns.events import TextDelta, ToolCallCut, TurnFailed, TurnStarted
from turns.reply import fold

EACH = pytest.mark.parametrize("api", apis.NAMES)
MODEST = settings(max_examples=80, deadline=None)


@EACH
@MODEST
@given(events=legal.sequences())
def test_a_stream_is_strictly_legal(api: str, events: list[Any]) -> None:
    assert apis.problems(api, apis.stream(api, events)) == []


@EACH
@MODEST
@given(events=legal.sequences(failing=True))
def test_a_failed_stream_ends_as_its_api_says(api: str, events: list[Any]) -> None:
    raw = apis.stream(api, events)
    assert apis.problems(api, raw) == []
    kinds = [event if event == "[DONE]" else event.get("type") for _, event in apis.parse(raw)]
    if api == "messages":
        assert kinds[-1] == "error"
        assert "message_stop" not in kinds
    elif api == "responses":
        assert kinds[-1] == "response.failed"
        assert "response.completed" not in kinds
    else:
        assert kinds[-1] == "[DONE]"
        assert "error" in apis.parse(raw)[-2][1]


@EACH
@MODEST
@given(data=st.data(), events=legal.sequences())
def test_batches_do_not_change_the_bytes(api: str, data: Any, events: list[Any]) -> None:
    whole = apis.stream(api, events)
    steps = apis.encoder(api)
    assert b"".join(steps.encode(batch) for batch in data.draw(legal.splits(events))) == whole


@EACH
@MODEST
@given(data=st.data(), events=legal.sequences())
def test_keepalives_are_legal_anywhere(api: str, data: Any, events: list[Any]) -> None:
    encoder = apis.encoder(api)
    raw = encoder.keepalive()
    for batch in data.draw(legal.splits(events)):
        raw += encoder.encode(batch) + encoder.keepalive()
    assert apis.problems(api, raw) == []
    assert encoder.finished
    assert encoder.keepalive() == b""
    assert encoder.encode(events) == b""


def whole(api: str, events: list[Any], **fields: Any) -> dict[str, Any]:
    status, body = apis.encoder(api, **fields).whole(fold(events))
    assert status == 200
    return json.loads(body)


@MODEST
@given(events=legal.sequences(), omitted=st.booleans())
def test_a_whole_message_is_the_fold_of_its_stream(events: list[Any], omitted: bool) -> None:
    display = {"thinking": {"type": "adaptive", "display": "omitted"}} if omitted else {}
    streamed = apis.parse(apis.stream("messages", events, **display))
    assert whole("messages", events, **display) == clients.messages(streamed)


@MODEST
@given(events=legal.sequences())
def test_a_whole_completion_is_the_fold_of_its_stream(events: list[Any]) -> None:
    folded = clients.chat(apis.parse(apis.stream("chat", events)))
    completion = whole("chat", events)
    choice = completion["choices"][0]
    assert choice["message"].pop("refusal") is None
    assert folded == {
        "message": choice["message"],
        "finish_reason": choice["finish_reason"],
        **{name: completion[name] for name in ("id", "created", "model", "usage")},
    }


@MODEST
@given(events=legal.sequences(), summary=st.sampled_from([None, "auto"]))
def test_a_whole_response_is_the_last_event_of_its_stream(
    events: list[Any], summary: str | None
) -> None:
    asked = {"reasoning": {"summary": summary}}
    streamed = apis.parse(apis.stream("responses", events, **asked))
    assert whole("responses", events, **asked) == streamed[-1][1]["response"]


@MODEST
@given(events=legal.sequences(), summary=st.sampled_from([None, "auto"]))
def test_deltas_alone_make_the_items_of_a_response(events: list[Any], summary: str | None) -> None:
    streamed = apis.parse(apis.stream("responses", events, reasoning={"summary": summary}))
    done = [e["item"] for _, e in streamed if e["type"] == "response.output_item.done"]
    output = streamed[-1][1]["response"]["output"]
    assert [item for item in output if item["status"] == "completed"] == done
    for built, item in zip(clients.responses(streamed), output, strict=True):
        said = {"content", "summary", "arguments", "input", "name", "namespace", "call_id", "id"}
        if item["type"] in ("tool_search_call", "local_shell_call"):
            said -= {"arguments"}  # these have no events for what they grow by
        assert {k: v for k, v in built.items() if k in said} == {
            k: v for k, v in item.items() if k in said
        }


@EACH
@MODEST
@given(events=legal.sequences())
def test_a_cut_call_is_never_reported_as_complete(api: str, events: list[Any]) -> None:
    cuts = any(isinstance(event, ToolCallCut) for event in events)
    last = apis.parse(apis.stream(api, events))
    if not cuts:
        return
    if api == "messages":
        assert last[-2][1]["delta"]["stop_reason"] == "max_tokens"
    elif api == "responses":
        response = last[-1][1]["response"]
        assert response["status"] == "incomplete"
        done = {e["item"]["id"] for _, e in last if e["type"] == "response.output_item.done"}
        cut = [item for item in response["output"] if item["id"] not in done]
        assert [item["status"] for item in cut] == ["incomplete"] * len(cut)
        assert cut
    else:
        assert clients.chat(last)["finish_reason"] == "length"


@EACH
def test_a_reply_that_failed_is_an_error_status(api: str) -> None:
    died = TurnFailed("engine", "the engine died; send the turn again")
    events = [TurnStarted(3), TextDelta("Hel"), died]
    status, body = apis.encoder(api).whole(fold(events))
    assert status == 500
    assert "send the turn again" in json.loads(body)["error"]["message"]
