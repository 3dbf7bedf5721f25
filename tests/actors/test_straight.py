"""The way straight to the socket: the same bytes as by `send`, and `send` wherever it must wait."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import httpx
import pytest
from starlette.middleware import Middleware

from actors.straight import Straight, with_straight
from actors.stream import Writer
from deployments.http_middlewares import middlewares
from tests.serving.server import listening

PIECES = [b"data: 1\n\n", b"", b"data: \xc3\xa9\n\n", b"x" * 300_000]


class Application:
    """Answers with `PIECES`; counts what went through `send`."""

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self.headers = headers
        self.sent: list[str] = []
        self.straight = False

    async def __call__(self, scope: Any, _: Any, send: Any) -> None:
        async def counted(message: MutableMapping[str, Any]) -> None:
            self.sent.append(message["type"])
            await send(message)

        await counted({"type": "http.response.start", "status": 200, "headers": self.headers})
        way = with_straight(scope, counted)
        self.straight = hasattr(way, "straight")
        writer = Writer(way)
        for piece in PIECES:
            writer.write(piece)
        await writer.drained()
        await counted({"type": "http.response.body", "body": b""})


async def test_chunks_go_past_send_and_come_out_the_same() -> None:
    application = Application([])
    async with listening(application) as url, httpx.AsyncClient() as client:
        answer = await client.get(url, timeout=20)
    assert answer.content == b"".join(PIECES)
    assert application.straight
    # What would have had to wait for the socket went through `send`, if anything did.
    assert application.sent[0] == "http.response.start"
    assert len(application.sent) <= 3


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_body_of_known_length_goes_through_send(method: str) -> None:
    length = str(len(b"".join(PIECES))).encode()
    application = Application([(b"content-length", length)])
    async with listening(application) as url, httpx.AsyncClient() as client:
        answer = await client.request(method, url, timeout=20)
    assert answer.content == (b"".join(PIECES) if method == "GET" else b"")
    assert application.sent.count("http.response.body") == len(PIECES) + 1


async def test_another_server_or_another_loop_is_left_alone() -> None:
    seen: list[Any] = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append(scope)

    async def send(_: Any) -> None: ...

    await Straight(app)({"type": "http"}, None, send)
    assert seen == [{"type": "http"}]
    elsewhere = {"treadle.straight": (object(), lambda _: True)}
    assert with_straight(elsewhere, send) is send


def test_serve_is_given_it() -> None:
    assert isinstance(middlewares()[-1], Middleware)
    assert middlewares()[-1].cls is Straight
