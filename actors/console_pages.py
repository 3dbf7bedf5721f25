"""The JSON that the console shows, below `/console/api/`.

`may_see_console` is asked before each answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from actors.console import Console
from actors.console_access import CLOSED, may_see_console
from actors.exchange import SSE_HEADERS
from actors.ingress import Ingress
from actors.news import FleetOf, News, Topic
from actors.page_requests import answer
from actors.reception import caller, header_map
from turns.errors import AuthenticationError, InvalidRequestError, NotFoundError

PREFIX = "/console/api"
PRIVATE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
HTTP_OK, HTTP_NOT_FOUND = 200, 404

ToolRuns = Callable[[str, dict[str, Any]], Awaitable[tuple[int, bytes]]]
"""Asks the streaming tools, as `toolruns.gateway.trajectories.Trajectories.told` answers."""


async def no_tool_runs(what: str, _asked: dict[str, Any]) -> tuple[int, bytes]:
    """No streaming tools are served beside these models."""
    return (200, b"[]") if what == "listed" else (404, b"no streaming tools are served here")


def guard(*, anyone: bool) -> Callable[[Request], None]:
    """Refuses whoever may not see the console."""

    def shown(request: Request) -> None:
        peer, local = (request.scope.get(end) or ("",) for end in ("client", "server"))
        headers = header_map(request.scope)
        key = caller(request.scope, headers).key
        if not may_see_console(headers, key=key, peer=peer[0], local=local[0], anyone=anyone):
            raise AuthenticationError(CLOSED)

    return shown


def console_data(
    ingress: Ingress, console: Console, fleet: FleetOf, *, anyone: bool = False
) -> APIRouter:
    """Sessions, turns, the fleet, and news of them. With `anyone` not for this machine alone."""
    router = APIRouter(prefix=PREFIX, dependencies=[Depends(guard(anyone=anyone))])
    news = News(console, fleet)

    @router.get("/about")
    async def about() -> Response:
        models = [{"id": c.id, "context": c.context_window} for c in ingress.names.cards()]
        settings = console.settings
        return told({"models": models, "redacted": settings.redact, "kept_s": settings.ttl})

    @router.get("/sessions")
    async def sessions(q: str = "", offset: int = 0, limit: int = 100) -> Response:
        return told(await console.sessions(q[:200], offset=max(0, offset), limit=limit))

    @router.get("/sessions/{name}")
    async def session(name: str) -> Response:
        return told(await console.session(name))

    @router.get("/sessions/{name}/turns/{turn}")
    async def turn(name: str, turn: str) -> Response:
        return told(await console.turn(name, turn))

    @router.get("/fleet")
    async def load() -> Response:
        return told(await fleet())

    @router.get("/events")
    async def events(topic: Topic = "turns") -> Response:
        reading = news.reading(topic)
        reader = await reading.__aenter__()

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in reader.pieces():
                    yield piece
            finally:
                await reading.__aexit__(None, None, None)

        return StreamingResponse(pieces(), headers=SSE_HEADERS)

    return router


def console_runs(tools: ToolRuns, *, redact: bool, anyone: bool = False) -> APIRouter:
    """The runs of streaming tools."""
    router = APIRouter(prefix=f"{PREFIX}/runs", dependencies=[Depends(guard(anyone=anyone))])

    async def ran(what: str, **asked: Any) -> Response:
        status, body = await tools(what, asked)
        if status == HTTP_OK:
            return answer(body, headers=PRIVATE)
        error = NotFoundError if status == HTTP_NOT_FOUND else InvalidRequestError
        raise error(body.decode())

    @router.get("")
    async def runs() -> Response:
        return await ran("listed")

    @router.get("/{handle}")
    async def run(handle: str) -> Response:
        return await ran("whole", handle=handle, redact=redact)

    @router.get("/{handle}/rows")
    async def rows(handle: str, offset: int = 0, where: str = "", order_by: str = "") -> Response:
        if redact:
            raise NotFoundError("this console is redacted: rows are not shown")
        at = max(0, offset)
        return await ran("rows", handle=handle, offset=at, where=where, order_by=order_by)

    return router


def told(data: Any) -> Response:
    return answer(msgspec.json.encode(data), headers=PRIVATE)
