"""Clients that read slowly: their turns wait for them, hold nothing meanwhile, and come out whole."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import websockets
from websockets.asyncio.client import ClientConnection

from actors import exchange, socket_pace
from tests.protocols import apis
from tests.serving.asks import PATHS, ask
from tests.serving.server import MODEL, Server
from tests.serving.waits import until

WORDS = 8_000
"""More than the buffers between an engine and a small socket hold: 1.5 MB of events."""


@contextlib.asynccontextmanager
async def opened(server: Server, body: dict[str, object]) -> AsyncIterator[asyncio.StreamReader]:
    """A connection that has asked and has read nothing, with small buffers of its own."""
    host, port = server.url.removeprefix("http://").split(":")
    data = json.dumps(body).encode()
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.setblocking(False)
    await asyncio.get_running_loop().sock_connect(small, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=small, limit=2**14)
    head = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n"
    writer.write(head.encode() + b"connection: close\r\n\r\n" + data)
    try:
        yield reader
    finally:
        writer.close()


def said(got: bytes, choices: int) -> list[str]:
    """The text of each choice of a stream that was read to its end."""
    events = [data for _, data in apis.parse(dechunked(got)) if isinstance(data, dict)]
    texts = [""] * choices
    for choice in (one for event in events for one in event["choices"]):
        texts[choice["index"]] += choice["delta"].get("content") or ""
    return texts


async def test_turn_waits_for_its_reader_and_comes_out_whole(server: Server) -> None:
    server.engine.keeps_output = False
    server.says({"endless": "word "})
    body = ask("chat", stream=True, max_completion_tokens=WORDS)
    async with opened(server, body) as reader:
        await until(lambda: server.engine.aborts, within=30)
        await until(lambda: not server.replica.inner.open_turns)
        await until(lambda: not server.reserved(MODEL))
        (flight,) = server.conductor.flights()
        assert len(flight.ids) < WORDS
        server.says({"text": "still served"})
        answer = await server.http.post(PATHS["chat"], json=ask("chat"))
        assert answer.json()["choices"][0]["message"]["content"] == "still served"
        server.says({"endless": "word "})
        async with asyncio.timeout(60):
            got = await reader.read(-1)
    (text,) = said(got, 1)
    assert server.metrics.registry.get_sample_value("treadle_turns_moved_total") >= 1
    whole = await server.http.post(PATHS["chat"], json=body | {"stream": False})
    assert text == whole.json()["choices"][0]["message"]["content"]
    await until(lambda: not len(server.conductor))


async def test_reader_that_reads_nothing_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "BEHIND_FOR", 0.1)
    server.engine.keeps_output = False
    server.ingress.keepalive_s = 0.1
    server.says({"endless": "word "})
    async with opened(server, ask("chat", stream=True, max_completion_tokens=WORDS)):
        await until(lambda: server.engine.aborts, within=30)
        await until(lambda: not len(server.conductor), within=30)
        assert not server.replica.inner.open_turns


async def test_choices_wait_together_for_their_reader_and_come_out_whole(server: Server) -> None:
    server.engine.keeps_output = False
    server.says({"endless": "word "})
    body = ask("chat", stream=True, n=2, max_completion_tokens=WORDS)
    async with opened(server, body) as reader:
        await until(lambda: len(server.engine.aborts) == 2, within=30)
        await until(lambda: not server.replica.inner.open_turns)
        assert all(len(flight.ids) < WORDS for flight in server.conductor.flights())
        async with asyncio.timeout(60):
            got = await reader.read(-1)
    whole = await server.http.post(PATHS["chat"], json=body | {"stream": False})
    assert said(got, 2) == [one["message"]["content"] for one in whole.json()["choices"]]
    await until(lambda: not len(server.conductor))


async def test_choices_that_nobody_reads_are_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "BEHIND_FOR", 0.1)
    server.engine.keeps_output = False
    server.ingress.keepalive_s = 0.1
    server.says({"endless": "word "})
    async with opened(server, ask("chat", stream=True, n=2, max_completion_tokens=WORDS)):
        await until(lambda: len(server.engine.aborts) == 2, within=30)
        await until(lambda: not len(server.conductor), within=30)
        await until(lambda: not server.ingress._live, within=30)
        assert not server.replica.inner.open_turns


@pytest.mark.parametrize("count", [1, 2])
async def test_last_words_wait_no_longer_for_their_reader(
    server: Server, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Turns that a grammar binds are not parked: they end before their reader is given up."""
    server.engine.keeps_output = False
    server.ingress.keepalive_s = 0.1
    server.says({"endless": "word "})
    body = ask("chat", stream=True, n=count, max_completion_tokens=WORDS)
    async with opened(server, body | {"response_format": {"type": "json_object"}}):
        await until(lambda: len(server.engine.jobs) == count, within=30)
        await until(lambda: not len(server.conductor), within=30)
        assert not server.engine.aborts
        assert server.ingress._live
        monkeypatch.setattr(exchange, "BEHIND_FOR", 0.1)
        await until(lambda: not server.ingress._live, within=30)


@contextlib.asynccontextmanager
async def connected(server: Server, **fields: object) -> AsyncIterator[ClientConnection]:
    """A WebSocket that has asked and takes one frame before it waits to be read."""
    url = server.url.replace("http", "ws") + "/v1/responses"
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.setblocking(False)
    host, port = server.url.removeprefix("http://").split(":")
    await asyncio.get_running_loop().sock_connect(small, (host, int(port)))
    how: dict[str, Any] = {"proxy": None, "max_queue": 1, "compression": None}
    async with websockets.connect(url, sock=small, **how) as client:
        body = {"type": "response.create", "model": MODEL, "store": False, "input": "go"}
        await client.send(json.dumps(body | fields))
        yield client


async def test_turn_waits_for_the_reader_of_its_socket(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_pace, "LOOK_EVERY", 0.01)  # the engine says 15,000 tokens a second
    server.engine.keeps_output = False
    server.says({"endless": "word "})
    async with connected(server, max_output_tokens=WORDS) as client:
        await until(lambda: server.engine.aborts, within=30)
        (flight,) = server.conductor.flights()
        assert len(flight.ids) < WORDS
        text = ""
        async with asyncio.timeout(60):
            while (event := json.loads(await client.recv()))["type"] != "response.incomplete":
                text += event.get("delta", "")
    assert text == "word " * len(text.split())
    assert event["response"]["usage"]["output_tokens"] == WORDS
    await until(lambda: not len(server.conductor))


async def test_socket_that_nobody_reads_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_pace, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(socket_pace.SocketPace.lost, "__defaults__", (0.1,))
    server.engine.keeps_output = False
    server.says({"endless": "word "})
    async with connected(server, max_output_tokens=WORDS):
        await until(lambda: server.engine.aborts, within=30)
        await until(lambda: not len(server.conductor), within=30)
        assert not server.replica.inner.open_turns


def dechunked(got: bytes) -> bytes:
    """The body of a response in chunks."""
    _, _, data = got.partition(b"\r\n\r\n")
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body, data = body + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return body


async def test_turn_whose_tools_we_run_waits_for_its_reader_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp", reason="the extra `tools` is not installed")
    from tests.serving.shops import shop  # noqa: PLC0415 - the extra

    monkeypatch.setattr(socket_pace, "LOOK_EVERY", 0.01)
    async with shop(tmp_path) as here:
        here.server.engine.keeps_output = False
        here.server.says({"endless": "word "})
        fields = {"max_output_tokens": WORDS, "tools": [here.tool()]}
        async with connected(here.server, **fields) as client:
            await until(lambda: here.server.engine.aborts, within=30)
            client.transport.abort()
        await until(lambda: not len(here.server.conductor), within=30)
