"""Straight to the socket: a streaming body's bytes to the HTTP server's transport in one call.

Between an application and the transport stand three coroutines (Serve's two and uvicorn's) and a
message for each; for what a token is they do nothing, and they cost as much as the socket does.
`Straight`, in front of all (`deployments.http_middlewares`), finds uvicorn's response behind
`send` and puts a function into the scope that writes a chunk to it, as uvicorn would. Beginning and
end of a response still go through `send`, and so does a chunk that would have to wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

KEY = "treadle.straight"

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Write = Callable[[bytes], bool]
"""Writes a chunk of the body; False, and nothing written, where it has to go through `send`."""

NEEDED = ("chunked_encoding", "disconnected", "flow", "response_complete", "scope", "transport")


class Straight:
    """An ASGI application in front of another."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        response = getattr(send, "__self__", None)
        if scope["type"] == "http" and all(hasattr(response, name) for name in NEEDED):
            scope = {**scope, KEY: (asyncio.get_running_loop(), writing(response))}
        await self._app(scope, receive, send)


def writing(response: Any) -> Write:
    """The chunks of one of uvicorn's responses, that of its parser `httptools`."""

    def write(data: bytes) -> bool:
        if (
            response.flow.write_paused
            or response.disconnected
            or response.response_complete
            or not response.chunked_encoding
            or response.scope["method"] == "HEAD"
        ):
            return False
        if data:
            response.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True

    return write


class StraightSend:
    """A `send` with the way past it."""

    __slots__ = ("_send", "straight")

    def __init__(self, send: Send, straight: Write) -> None:
        self._send = send
        self.straight = straight

    def __call__(self, message: MutableMapping[str, Any]) -> Awaitable[None]:
        return self._send(message)


def with_straight(scope: MutableMapping[str, Any], send: Send) -> Send:
    """The `send`, with the way past it where there is one and it leads to this thread's loop."""
    loop, write = scope.get(KEY, (None, None))
    if write is None or loop is not asyncio.get_running_loop():
        return send
    return StraightSend(send, write)
