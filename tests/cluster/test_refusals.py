"""What is wrong with a request is said in its API's own shape, before anything is begun."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.served import Server
from tests.cluster import wire
from tests.cluster.asks import APIS, ask
from tests.cluster.control import Control
from tests.protocols.apis import problems

pytestmark = pytest.mark.ray
EACH = pytest.mark.parametrize("api", APIS)
STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def error(api: str, answer: Any) -> dict[str, Any]:
    """The error of an answer, whose envelope must be the API's own."""
    found: dict[str, Any] = answer["error"]
    if api == "messages":
        assert answer["type"] == "error"
        assert set(found) == {"type", "message"}
    else:
        assert set(found) == {"message", "type", "param", "code"}
    return found


@EACH
@pytest.mark.parametrize("body", [b"{", b"", b"[]", b'{"model": 3}', b"\xff\xfe{}"], ids=repr)
def test_bad_body_is_a_400(server: Server, api: str, body: bytes) -> None:
    refused = wire.post(server, api, body)
    assert refused.status == 400
    assert error(api, refused.json())["type"] == "invalid_request_error"


@EACH
@STREAMED
def test_unknown_model_is_a_404_that_names_those_there_are(
    server: Server, api: str, stream: bool
) -> None:
    refused = wire.post(server, api, ask(api, "only text", stream=stream) | {"model": "no/such"})
    assert refused.status == 404
    found = error(api, refused.json())
    assert "no/such" in found["message"]
    assert "lab-model" in found["message"]
    assert found["type" if api == "messages" else "code"] in ("not_found_error", "model_not_found")


@EACH
@STREAMED
def test_prompt_too_long_is_worded_as_harnesses_look_for_it(
    server: Server, control: Control, api: str, stream: bool
) -> None:
    refused = wire.post(server, api, ask(api, "much too long " * 4000, stream=stream))
    assert refused.status == 400
    found = error(api, refused.json())
    if api == "messages":
        assert found["message"].startswith("prompt is too long: ")
        assert found["message"].endswith("> 8192 maximum")
    else:
        assert "maximum context length is 8192 tokens" in found["message"]
        assert "context window" in found["message"]
        assert found["code"] == "context_length_exceeded"
    control.assert_idle()


@EACH
def test_unknown_fields_are_ignored(server: Server, api: str) -> None:
    raw = wire.turn(server, api, "think first", no_such_field={"a": [1]}, another="x")
    assert problems(api, raw) == []
    assert wire.text(api, raw) == "The answer."


@EACH
def test_long_silence_is_filled_with_events_of_the_api(
    server: Server, control: Control, api: str
) -> None:
    """The engine says nothing for 2.5 s and the configured patience is half a second."""
    raw = wire.turn(server, api, "start late")
    assert problems(api, raw) == []
    before, _, _ = raw.partition(b"Here")
    alive = {
        "messages": b"event: ping\ndata: ",
        "responses": b"event: response.in_progress\ndata: ",
        "chat": b'"delta":{}',
    }[api]
    assert before.count(alive) >= 2
    assert b"\n:" not in raw, "a comment does not keep every client waiting"
    control.assert_idle()
