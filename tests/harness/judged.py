"""A server of its own process behind a judge: every stream of turns passes it as it was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.serving.judging import Judged
from tests.serving.server import listening

OWN = {b"host", b"content-length", b"transfer-encoding", b"connection", b"accept-encoding"}
"""Headers that each of the two connections has for itself; uncoded, so that it can be read."""


class Forward:
    """An ASGI application that asks another server."""

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self._url = url
        self._http = http

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        target = self._url + scope["raw_path"].decode() + "?" + scope["query_string"].decode()
        headers = [(name, value) for name, value in scope["headers"] if name not in OWN]
        headers.append((b"accept-encoding", b"identity"))
        asked = self._http.build_request(scope["method"], target, headers=headers, content=body)
        answer = await self._http.send(asked, stream=True)
        try:
            told = [(k.lower(), v) for k, v in answer.headers.raw if k.lower() not in OWN]
            await send(
                {"type": "http.response.start", "status": answer.status_code, "headers": told}
            )
            async for part in answer.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await answer.aclose()


@asynccontextmanager
async def judged(url: str) -> AsyncIterator[str]:
    """The address of the judge in front of `url`; a wrong stream fails the block at its end."""
    async with httpx.AsyncClient(timeout=None, verify=False) as http:  # noqa: S113, S501 - the client's own patience; loopback
        judge = Judged(Forward(url, http))
        async with listening(judge) as found:
            yield found
        judge.check()
        assert judge.streams, "no stream came by"
