"""What outlives a response: continuing it, listing its input, summing it up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from protocols.registry import APIS
from protocols.responses import compaction, socket, stored
from tests.protocols import apis, legal
from turns.blocks import Message, Opaque, Text, ToolCall
from turns.errors import InvalidRequestError
from turns.events import TextDelta, TextEnded, TurnEnded, TurnStarted, Usage
from turns.reply import fold
from turns.turn import Turn

MODEST = settings(max_examples=60, deadline=None)


def body(**fields: Any) -> bytes:
    sent = apis.REQUESTS["responses"] | fields
    return json.dumps(sent, separators=(",", ":"), ensure_ascii=False).encode()


def read(raw: bytes) -> Turn:
    return APIS["responses"].decode(raw, {}, turn_id="turn_2")


def meant(turn: Turn) -> Iterator[tuple[str, Any]]:
    """The blocks with arguments as values: a client that parses a body spells them its own way."""
    for message in turn.messages:
        for block in message.blocks:
            is_call = isinstance(block, ToolCall) and block.kind == "function"
            value = json.loads(block.arguments) if is_call else None
            yield message.role, (replace(block, arguments="") if is_call else block, value)


@MODEST
@given(events=legal.sequences(cutting=False))
def test_going_on_from_the_store_is_replaying_the_history(events: list[Any]) -> None:
    first, again = body(instructions="Speak French."), {"instructions": "Speak Dutch."}
    answer = apis.encoder("responses").whole(fold(events))[1]
    earlier = [*stored.input_items(first, "turn_1"), *stored.output_items(answer)]
    going_on = body(input="more", previous_response_id="resp_1", **again)
    replayed = body(
        input=[
            {"role": "user", "content": apis.REQUESTS["responses"]["input"]},
            *json.loads(answer)["output"],
            {"role": "user", "content": "more"},
        ],
        **again,
    )
    turn = read(stored.continued(going_on, earlier, "turn_2"))
    assert [*meant(turn)] == [*meant(read(replayed))]
    assert turn.previous == "resp_1"
    assert turn.messages[0] == Message("system", (Text("Speak Dutch."),))


def test_input_items_get_ids_and_keep_their_own() -> None:
    sent = body(
        input=[{"role": "user", "content": "a", "id": None}, {"type": "x", "id": "own", "n": 1.0}]
    )
    items = stored.input_items(sent, "turn_1")
    assert [json.loads(item)["id"] for item in items] == ["item_100", "own"]
    assert b'"n":1.0' in items[1]


def test_listing_pages_from_the_newest() -> None:
    items = [json.dumps({"id": f"item_{n}"}).encode() for n in range(5)]

    def page(**query: str) -> tuple[list[str], bool]:
        found = json.loads(stored.listing(items, query))
        return [item["id"][-1] for item in found["data"]], found["has_more"]

    assert page() == (["4", "3", "2", "1", "0"], False)
    assert page(order="asc", limit="2") == (["0", "1"], True)
    assert page(after="item_3", limit="9") == (["2", "1", "0"], False)
    with pytest.raises(InvalidRequestError):
        page(after="item_9")
    with pytest.raises(InvalidRequestError):
        page(limit="many")


def test_bodies_about_a_stored_response() -> None:
    assert json.loads(stored.deleted("resp_1")) == {
        "id": "resp_1",
        "object": "response",
        "deleted": True,
    }
    cancelled = stored.with_status(b'{"id":"resp_1","status":"queued","n":1.0}', "cancelled")
    assert json.loads(cancelled) == {"id": "resp_1", "status": "cancelled", "n": 1.0}
    assert stored.not_found("resp_1").param == "previous_response_id"


TRIGGERED = {"input": [{"role": "user", "content": "go"}, {"type": "compaction_trigger"}]}


@MODEST
@given(events=legal.sequences())
def test_a_trigger_is_answered_by_exactly_one_summary(events: list[Any]) -> None:
    raw = apis.stream("responses", events, **TRIGGERED)
    assert apis.problems("responses", raw) == []
    streamed = apis.parse(raw)[-1][1]["response"]
    whole = json.loads(apis.encoder("responses", **TRIGGERED).whole(fold(events))[1])
    assert streamed["output"] == whole["output"]
    (item,) = streamed["output"]
    assert item["type"] == "compaction"
    texts = [block.text for block in fold(events).blocks if isinstance(block, Text)]
    assert compaction.unsealed(item["encrypted_content"]) == "".join(texts)


def test_a_summary_stands_for_what_it_sums_up() -> None:
    item = {"type": "compaction", "encrypted_content": compaction.sealed("all is well")}
    assert read(body(input=[item])).messages == (
        Message("user", (Text(compaction.HEAD + "all is well"),)),
    )
    foreign = {"type": "compaction", "encrypted_content": "gAAA"}
    assert read(body(input=[foreign])).messages == (
        Message("user", (Opaque("compaction", foreign),)),
    )


def test_a_trigger_asks_the_model_last() -> None:
    messages = read(body(**TRIGGERED)).messages
    assert messages[-1] == Message("user", (Text(compaction.PROMPT),))


def test_a_compacted_conversation_keeps_the_users_words() -> None:
    sent = body(
        input=[
            {"role": "developer", "content": "rules"},
            {"role": "user", "content": "fix it"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
        ],
        stream=True,
    )
    turn = read(stored.compactable(sent))
    assert (turn.stream, turn.store, turn.echo["compact"]) == (False, False, True)
    events = [TurnStarted(9), TextDelta("done so far"), TextEnded(), TurnEnded("end", Usage(9))]
    whole = apis.encoder("responses", turn).whole(fold(events))[1]
    answer = json.loads(stored.compacted(sent, whole, "turn_1"))
    assert answer["object"] == "response.compaction"
    assert [item.get("role", item.get("type")) for item in answer["output"]] == [
        "user",
        "compaction",
    ]
    assert read(body(input=answer["output"])).messages == (
        Message("user", (Text("fix it"),)),
        Message("user", (Text(compaction.HEAD + "done so far"),)),
    )


@MODEST
@given(events=legal.sequences())
def test_frames_are_the_events_of_the_stream(events: list[Any]) -> None:
    raw = apis.stream("responses", events)
    assert [json.loads(frame) for frame in socket.frames(raw)] == [e for _, e in apis.parse(raw)]


def test_a_warm_up_begins_and_completes_with_no_output() -> None:
    turn = apis.decode("responses", type="response.create", generate=False)
    assert turn.echo["generate"] is False
    frames = [json.loads(frame) for frame in socket.warmed(apis.encoder("responses", turn), 12)]
    assert [frame["type"].split(".")[1] for frame in frames] == [
        "created",
        "in_progress",
        "completed",
    ]
    assert frames[-1]["response"]["output"] == []
    assert frames[-1]["response"]["usage"]["input_tokens"] == 12


def test_an_error_on_a_socket_is_a_frame() -> None:
    frame = json.loads(socket.error_frame(stored.not_found("resp_9")))
    assert (frame["type"], frame["status"]) == ("error", 404)
    assert frame["error"]["code"] == "previous_response_not_found"
    assert "response.create" in socket.unknown_frame("ping").message
