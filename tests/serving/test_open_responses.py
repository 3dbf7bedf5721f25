"""The checks of the public compliance suite of Open Responses: the seventeen of its 2026-04-24
edition by what they cover, each against the public schema. Run with a model that sees images.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import websockets

from tests.protocols import apis
from tests.serving import open_responses as schema
from tests.serving.server import MODEL, Server, serving, settings

PATH = "/v1/responses"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather at a place",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    },
}
CALL = {"call": {"tool": "get_weather", "arguments": {"location": "San Francisco"}}}


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **fields}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving(settings(model={"family": "step3"})) as running:
        running.says({"text": "Ahoy there, Alice."})
        yield running


async def answered(server: Server, *items: Any, **fields: Any) -> schema.Response:
    body = {"model": MODEL, "input": list(items), **fields}
    answer = await server.http.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    return schema.response(answer.json())


async def streamed(server: Server, *items: Any, **fields: Any) -> list[dict[str, Any]]:
    body = {"model": MODEL, "input": list(items), "stream": True, **fields}
    answer = await server.http.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    return [data for _, data in apis.parse(answer.content)]


PICTURE = [
    {"type": "input_text", "text": "What is it?"},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
]
PLAIN: dict[str, list[dict[str, Any]]] = {
    "basic-response": [said("user", "Say hello in three words.")],
    "assistant-phases": [
        said("user", "My name is Alice."),
        said("assistant", "One moment.", phase="commentary"),
        said("assistant", "Hello Alice!", phase="final_answer"),
        said("user", "What is my name?"),
    ],
    "system-prompt": [said("system", "You are a pirate."), said("user", "Say hello.")],
    "image-input": [said("user", PICTURE)],
    "multi-turn": [
        said("user", "My name is Alice."),
        said("assistant", "Hello Alice!"),
        said("user", "What is my name?"),
    ],
}


@pytest.mark.parametrize("name", PLAIN)
async def test_a_response(server: Server, name: str) -> None:
    found = await answered(server, *PLAIN[name])
    assert found.status == "completed"
    assert [type(item) for item in found.output] == [schema.Message]


async def test_a_stream(server: Server) -> None:
    found = schema.events(await streamed(server, said("user", "Count to five.")))
    assert found.status == "completed"


async def test_a_tool_call(server: Server) -> None:
    server.says(CALL)
    found = await answered(server, said("user", "The weather?"), tools=[WEATHER])
    assert schema.FunctionCall in {type(item) for item in found.output}


async def test_a_tool_call_in_a_stream(server: Server) -> None:
    server.says(CALL)
    found = await streamed(server, said("user", "The weather?"), tools=[WEATHER])
    schema.events(found)
    kinds = [event["type"] for event in found]
    assert "response.function_call_arguments.delta" in kinds
    assert "response.function_call_arguments.done" in kinds
    for kind in ("added", "done"):
        items = [e["item"] for e in found if e["type"] == f"response.output_item.{kind}"]
        assert "function_call" in {item["type"] for item in items}


class Socket:
    """A connection that sends turns and reads their events."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def turn(self, *items: Any, **fields: Any) -> list[dict[str, Any]]:
        body = {"type": "response.create", "model": MODEL, "input": list(items), **fields}
        return await self.send(json.dumps(body))

    async def send(self, frame: str) -> list[dict[str, Any]]:
        await self._socket.send(frame)
        found: list[dict[str, Any]] = []
        while not found or found[-1]["type"] not in (*schema.LAST, "error"):
            found.append(json.loads(await self._socket.recv()))
        return found


def connecting(server: Server) -> Any:
    return websockets.connect(server.url.replace("http", "ws") + PATH, proxy=None)


async def test_a_socket_answers(server: Server) -> None:
    async with connecting(server) as raw:
        found = schema.events(await Socket(raw).turn(said("user", "Hello.")))
    assert found.status == "completed"


async def test_a_socket_answers_one_turn_after_the_other(server: Server) -> None:
    async with connecting(server) as raw:
        names = {schema.events(await Socket(raw).turn(said("user", "Hello."))).id for _ in range(2)}
    assert len(names) == 2


@pytest.mark.parametrize("store", [True, False])
async def test_a_socket_goes_on_from_its_last_response(server: Server, store: bool) -> None:
    """Two of the checks: what is stored, and what only the connection remembers."""
    async with connecting(server) as raw:
        socket = Socket(raw)
        first = schema.events(await socket.turn(said("user", "My name is Alice."), store=store))
        fields = {"previous_response_id": first.id, "store": store}
        second = schema.events(await socket.turn(said("user", "My name?"), **fields))
    assert second.previous_response_id == first.id
    assert second.usage is not None
    assert first.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens


async def test_a_socket_brings_a_tools_result_back(server: Server) -> None:
    server.says(CALL)
    async with connecting(server) as raw:
        socket = Socket(raw)
        fields = {"tools": [WEATHER], "store": False}
        first = schema.events(await socket.turn(said("user", "The weather?"), **fields))
        (call,) = [item for item in first.output if isinstance(item, schema.FunctionCall)]
        server.says({"text": "Foggy."})
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "fog"}
        second = await socket.turn(result, previous_response_id=first.id, **fields)
    assert schema.events(second).status == "completed"


async def test_another_socket_knows_only_what_is_stored(server: Server) -> None:
    names = {}
    async with connecting(server) as raw:
        for store in (True, False):
            found = schema.events(await Socket(raw).turn(said("user", "Hello."), store=store))
            names[store] = found.id
    async with connecting(server) as raw:
        socket = Socket(raw)
        found = await socket.turn(said("user", "Go on."), previous_response_id=names[True])
        assert schema.events(found).status == "completed"
        (lost,) = await socket.turn(said("user", "Go on."), previous_response_id=names[False])
        assert schema.error_frame(lost).error.code == "previous_response_not_found"


@pytest.mark.parametrize(
    "frame",
    ['{"type":"response.create","model":"lab-model"}', '{"type":"hello"}', "what?"],
    ids=["no-input", "another-type", "no-json"],
)
async def test_a_bad_frame_is_a_structured_error_and_not_the_end(
    server: Server, frame: str
) -> None:
    async with connecting(server) as raw:
        socket = Socket(raw)
        (error,) = await socket.send(frame)
        assert schema.error_frame(error).status == 400
        assert schema.events(await socket.turn(said("user", "Hello."))).status == "completed"


async def compact(server: Server, **fields: Any) -> schema.Compacted:
    answer = await server.http.post(f"{PATH}/compact", json={"model": MODEL, **fields})
    assert answer.status_code == 200, answer.text
    found = schema.compacted(answer.json())
    assert isinstance(found.output[-1], schema.Compaction)
    return found


@pytest.mark.parametrize("content", ["My name is Alice.", PICTURE[:1]], ids=["text", "parts"])
async def test_a_conversation_is_summed_up(server: Server, content: Any) -> None:
    found = await compact(server, input=[said("user", content), said("assistant", "Hello!")])
    assert [type(item) for item in found.output] == [schema.Message, schema.Compaction]


@pytest.mark.parametrize("way", ["http", "socket"])
async def test_a_summary_is_gone_on_from(server: Server, way: str) -> None:
    first = await answered(server, said("user", "My name is Alice."))
    answer = await server.http.post(
        f"{PATH}/compact", json={"model": MODEL, "previous_response_id": first.id}
    )
    window = [*answer.json()["output"], said("user", "What is my name?")]
    if way == "http":
        found = await answered(server, *window, store=False)
    else:
        async with connecting(server) as raw:
            found = schema.events(await Socket(raw).turn(*window, store=False))
    assert found.status == "completed"
