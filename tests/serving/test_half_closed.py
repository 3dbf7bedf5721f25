"""A client that closes its half of the connection behind its request, seen without a proxy: to the
HTTP server it has left, so its turn ends at once and nothing of it remains.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.serving.asks import PATHS, ask
from tests.serving.server import Server
from tests.serving.waits import until


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
async def test_nothing_remains_of_its_turn(server: Server, api: str, stream: bool) -> None:
    server.says({"text": "word " * 5000}, tokens={"step_ms": 5})
    body = json.dumps(ask(api, stream=stream)).encode()
    head = f"POST {PATHS[api]} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    port = int(server.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        await until(lambda: server.engine.stats().running)
        writer.write_eof()
        async with asyncio.timeout(30):
            await reader.read()  # to the end of the connection
        await until(lambda: not server.replica.inner.open_turns)
        assert len(server.conductor) == 0
        assert server.engine.aborts
    finally:
        writer.close()
        await writer.wait_closed()
    answer = await server.http.get("/health")  # the server itself is as it was
    assert answer.status_code == 200
