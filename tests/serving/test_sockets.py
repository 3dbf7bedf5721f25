"""The WebSocket mode of Responses, as Codex uses it: warm up, go on from what is new, leave."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets
from websockets.asyncio.client import ClientConnection

from tests.protocols import apis
from tests.serving.asks import QUESTION, TOOLS
from tests.serving.server import MODEL, Server, serving, settings
from tests.serving.waits import until

CREATE = {"type": "response.create", "model": MODEL, "store": False}


@asynccontextmanager
async def connected(server: Server, path: str = "/v1/responses", **headers: str) -> Any:
    url = server.url.replace("http", "ws") + path
    async with websockets.connect(url, additional_headers=headers, proxy=None) as socket:
        yield socket


async def ask(socket: ClientConnection, **fields: Any) -> list[dict[str, Any]]:
    """Send a frame; all events until the last of the response."""
    await socket.send(json.dumps(CREATE | fields))
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(10):
        while not found or not last(found[-1]):
            found.append(json.loads(await socket.recv()))
    return found


def last(event: dict[str, Any]) -> bool:
    ends = ("response.completed", "response.incomplete", "response.failed", "error")
    return event["type"] in ends


async def test_the_frames_are_the_events_of_the_stream(server: Server) -> None:
    server.says({"think": "Hm."}, {"text": "Rain."}, {"call": {"tool": "forecast"}})
    fields = {"input": QUESTION, "tools": TOOLS["responses"]}
    async with connected(server) as socket:
        frames = await ask(socket, **fields)
    body = {"model": MODEL, "store": False, "stream": True, **fields}
    answer = await server.http.post("/v1/responses", json=body)
    streamed = [data for _, data in apis.parse(answer.content)]
    assert [frame["type"] for frame in frames] == [event["type"] for event in streamed]
    text = "\n\n".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}" for frame in frames)
    assert apis.problems("responses", f"{text}\n\n".encode()) == []


async def test_a_warm_up_prefills_and_says_nothing(server: Server) -> None:
    async with connected(server) as socket:
        warm = await ask(socket, input=QUESTION, tools=TOOLS["responses"], generate=False)
        assert [frame["type"] for frame in warm] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]
        assert warm[-1]["response"]["output"] == []
        server.says({"text": "Rain."})
        name = warm[-1]["response"]["id"]
        said = await ask(socket, input=[], tools=TOOLS["responses"], previous_response_id=name)
        usage = said[-1]["response"]["usage"]
        assert usage["input_tokens_details"]["cached_tokens"] > 0
    first, second = server.engine.jobs
    assert first.prompt == second.prompt
    assert first.sampling.max_tokens == 1


async def test_a_connection_goes_on_from_its_own_response_without_a_store(server: Server) -> None:
    server.says({"think": "Hm."}, {"call": {"tool": "forecast"}})
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    new, previous = list(history), None
    async with connected(server) as socket:
        for step in range(3):
            fields = {"input": new, "tools": TOOLS["responses"]}
            frames = await ask(socket, **fields, previous_response_id=previous)
            whole = frames[-1]["response"]
            body = {"model": MODEL, "store": False, "tools": TOOLS["responses"], "input": history}
            await server.http.post("/v1/responses", json=body)
            first, second = server.engine.jobs[-2:]
            assert first.prompt == second.prompt
            (call,) = [item for item in whole["output"] if item["type"] == "function_call"]
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "r"}
            history += [*whole["output"], result | {"output": f"r{step}"}]
            new, previous = [result | {"output": f"r{step}"}], whole["id"]
        assert not (await server.http.get(f"/v1/responses/{previous}")).is_success


async def test_only_the_latest_is_remembered_and_another_connection_knows_nothing(
    server: Server,
) -> None:
    async with connected(server) as socket, connected(server) as other:
        first = (await ask(socket, input="one"))[-1]["response"]["id"]
        second = (await ask(socket, input="two"))[-1]["response"]["id"]
        for asked, name in ((socket, first), (other, second)):
            (error,) = await ask(asked, input="more", previous_response_id=name)
            assert (error["type"], error["status"]) == ("error", 404)
            assert error["error"]["code"] == "previous_response_not_found"
        assert last((await ask(socket, input="more", previous_response_id=second))[-1])


async def test_what_is_stored_goes_on_anywhere(server: Server) -> None:
    """Also where the start of it was only remembered by the connection."""
    server.says({"text": "{last_user}"})
    async with connected(server) as socket:
        first = (await ask(socket, input="never stored"))[-1]["response"]["id"]
        fields = {"input": "stored", "previous_response_id": first, "store": True}
        second = (await ask(socket, **fields))[-1]["response"]["id"]
    body = {"model": MODEL, "input": "later", "previous_response_id": second}
    assert (await server.http.post("/v1/responses", json=body)).status_code == 200
    text = server.ingress.models[0].folder.tokenizer.decode(server.engine.jobs[-1].prompt)
    assert text.index("never stored") < text.index("stored<") < text.index("later")


@pytest.mark.parametrize(
    ("frame", "status"),
    [
        ("{", 400),
        ("[1]", 400),
        ('{"type": "response.cancel"}', 400),
        ('{"type": "response.create", "model": "nope", "input": "x"}', 404),
        ('{"type": "response.create", "model": "lab-model"}', 400),
        (
            '{"type": "response.create", "model": "lab-model", "input": "x", "background": true}',
            400,
        ),
        (b"\xff\xfe", 400),
    ],
)
async def test_a_bad_frame_is_an_error_and_not_the_end(
    server: Server, frame: str | bytes, status: int
) -> None:
    async with connected(server) as socket:
        await socket.send(frame)
        error = json.loads(await socket.recv())
        assert (error["type"], error["status"]) == ("error", status)
        assert last((await ask(socket, input="hi"))[-1])


async def test_a_full_fleet_says_when_to_come_again(server: Server) -> None:
    async with connected(server) as socket:
        server.kill(server.replica)
        (error,) = await ask(socket, input="hi")
        assert error["status"] == 503
        assert error["headers"] == {"retry-after": "5"}


async def test_leaving_ends_the_engines_work(server: Server) -> None:
    server.says({"endless": "word "}, tokens={"step_ms": 5})
    async with connected(server) as socket:
        await socket.send(json.dumps(CREATE | {"input": "hi"}))
        while "delta" not in json.loads(await socket.recv()):
            pass
    await until(lambda: server.engine.aborts)
    await until(lambda: len(server.conductor) == 0)


async def test_requests_of_one_connection_are_answered_in_turn(server: Server) -> None:
    server.says({"text": "{last_user}"})
    async with connected(server) as socket:
        for word in ("first", "second", "third"):
            await socket.send(json.dumps(CREATE | {"input": word}))
        said = []
        async with asyncio.timeout(10):
            while len(said) < 3:
                event = json.loads(await socket.recv())
                if event["type"] == "response.completed":
                    said.append(event["response"]["output"][0]["content"][0]["text"])
    assert said == ["first", "second", "third"]


async def test_a_silent_response_is_kept_alive() -> None:
    async with serving(settings(ingress={"keepalive_s": 0.05})) as server:
        server.says({"text": "At last."}, tokens={"first_after_ms": 500})
        async with connected(server) as socket:
            frames = await ask(socket, input="hi")
        kinds = [frame["type"] for frame in frames]
        assert kinds.count("response.in_progress") >= 3
        assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))


async def test_no_socket_is_anywhere_else(server: Server) -> None:
    with pytest.raises(websockets.InvalidStatus):
        async with connected(server, "/v1/messages"):
            pass


async def test_the_frames_of_codex(server: Server) -> None:
    """Its own three frames, the ids of ours put in where it names one of its server's."""
    names = ("warmup", "turn1", "turn2")
    paths = [Path(apis.FIXTURES, f"codex-ws-{name}.json") for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip(f"no fixtures in {apis.FIXTURES}; set TREADLE_FIXTURES")
    server.says({"call": {"tool": "exec_command"}})
    previous, call = None, ""
    async with connected(server) as socket:
        for path in paths:
            frame = json.loads(path.read_text())["request"]["body"]
            frame |= {"model": MODEL}
            if previous:
                frame["previous_response_id"] = previous
            for item in frame["input"]:
                if item["type"] == "function_call_output":
                    item["call_id"] = call
            response = (await ask(socket, **frame))[-1]["response"]
            assert response["status"] == "completed"
            previous = response["id"]
            calls = [i for i in response["output"] if i["type"] == "function_call"]
            call = calls[0]["call_id"] if calls else ""
    warm, first, second = (job.prompt for job in server.engine.jobs)
    pairs = enumerate(zip(warm, first, strict=False))
    shared = next((n for n, (a, b) in pairs if a != b), len(warm))
    # Codex's second developer message joins the first, in front of the tools: behind it all differs.
    assert shared > 0.45 * len(warm)
    assert second[: len(first)] == first
