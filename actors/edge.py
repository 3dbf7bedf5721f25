"""The edge: the ASGI application that harnesses talk to.

Turns are served here on the bare ASGI messages, since every layer between costs each token; all
that is not a turn (models, counts, stored responses) goes to the FastAPI application.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from actors.background import Background
from actors.choices import Choices
from actors.cross_origin import CrossOrigin
from actors.exchange import (
    REQUEST_ID,
    SSE_HEADERS,
    TRUNCATED,
    Exchange,
    StreamExchange,
    WholeExchange,
    refuse,
    respond,
    start,
)
from actors.flights import Flight
from actors.intake import Intake, Read
from actors.page_requests import MINTED
from actors.pages import INTERNAL
from actors.reception import (
    Asked,
    ClientGoneError,
    Receive,
    Scope,
    caller,
    header_map,
    local_path,
    receive_body,
    request_id,
)
from actors.response_pages import follow
from actors.straight import with_straight
from actors.stream import Message, Send
from protocols.registry import APIS
from turns.errors import InvalidRequestError, TreadleError
from turns.turn import Api

SECURITY = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
"""On every response that does not say otherwise itself: nothing here is a page."""

AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = dict[str, str]


class Edge:
    """Routes by path: turns are served here, sockets and pages by their own applications."""

    def __init__(
        self,
        intake: Intake,
        *,
        background: Background,
        pages: AsgiApp,
        sockets: AsgiApp,
        origins: CrossOrigin,
    ) -> None:
        self._intake = intake
        self._ingress = intake.ingress
        self._background = background
        self._pages = pages
        self._sockets = sockets
        self._origins = origins
        self._turns: dict[str, Api] = {api.path: name for name, api in APIS.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._sockets(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = header_map(scope)
        named = request_id(headers, uuid.uuid4().hex)
        said = {REQUEST_ID: named} | SECURITY | self._origins.headers(headers)
        if "x-request-id" not in headers:  # who has put it there says it in the response too
            said["x-request-id"] = named
        preflight = self._origins.preflight(scope["method"], headers)
        name = self._turns.get(local_path(scope))
        if preflight is not None:
            await respond(send, 204, said | preflight, b"")
        elif name is not None and scope["method"] == "POST":
            asked = Asked(named, headers, b"", caller(scope, headers))
            await self._turn(name, asked, said, receive, with_straight(scope, send))
        elif name is not None:
            await self._not_so(name, scope["method"], headers, said, send)
        else:
            scope[MINTED] = named
            await self._pages(scope, receive, saying(send, said))

    async def _not_so(
        self, name: Api, method: str, asked: Headers, said: Headers, send: Send
    ) -> None:
        """Another method on the path of turns. An upgrade that ends here has no WebSocket server
        behind it: Codex goes over to HTTP at once on a 426, and tries seven times on a 404.
        """
        upgrade = asked.get("upgrade", "").lower() == "websocket"
        error = InvalidRequestError(f"{method} is not for {APIS[name].path}; POST to it")
        status, own, body = APIS[name].error(error, request_id=said[REQUEST_ID])
        status = 426 if upgrade else 405
        await respond(send, status, {**own, **said, "allow": "POST"}, body)

    async def _turn(
        self, name: Api, asked: Asked, said: Headers, receive: Receive, send: Send
    ) -> None:
        api, turn_id = APIS[name], uuid.uuid4().hex
        try:
            read = await self._read(name, asked, receive, turn_id)
            said |= self._intake.headers(read)
            if read.turn.echo.get("background"):
                await self._in_background(read, said, send)
            elif read.turn.echo.get("choices", 1) > 1:
                await self._choices(read, said, receive, send)
            else:
                await self._answer(read, said, receive, send)
        except ClientGoneError:
            return
        except TreadleError as error:
            await refuse(send, api, error, said)
        except Exception as error:  # noqa: BLE001 - a defect of ours must not look like a cut line
            self._ingress.defect(turn_id, error)
            await refuse(send, api, TreadleError(INTERNAL), said)

    async def _read(self, name: Api, asked: Asked, receive: Receive, turn_id: str) -> Read:
        try:
            body = await receive_body(receive, asked.headers, self._ingress.limits)
        except TreadleError as error:
            self._ingress.refused(name, asked.id, error)
            raise
        return await self._intake.read(name, replace(asked, body=body), turn_id=turn_id)

    async def _answer(self, read: Read, said: Headers, receive: Receive, send: Send) -> None:
        encoder = read.encoder()
        exchange = StreamExchange(encoder) if read.turn.stream else WholeExchange(encoder)
        watch = asyncio.ensure_future(until_gone(receive))
        try:
            flight = await self._begin(read, exchange, watch)
        except BaseException:
            watch.cancel()
            raise

        if exchange.dropped:
            said[TRUNCATED] = str(exchange.dropped)

        def gone(_: object) -> None:
            self._ingress.leave(flight)  # nothing to leave once the turn has landed
            exchange.end()

        watch.add_done_callback(gone)
        try:
            if isinstance(exchange, StreamExchange):
                exchange.brake = partial(self._ingress.brake, flight)
                with self._ingress.kept_alive(exchange):
                    patience = self._ingress.keepalive_s
                    await exchange.run(send, read.api, flight, said, patience=patience)
            else:
                await exchange.run(send, read.api, flight, said)
        finally:
            watch.cancel()
            self._ingress.leave(flight)

    async def _choices(self, read: Read, said: Headers, receive: Receive, send: Send) -> None:
        """Several turns, one response."""
        choices = Choices(read)
        answering = asyncio.ensure_future(self._chosen(choices, said, send))
        watch = asyncio.ensure_future(until_gone(receive))
        try:
            await asyncio.wait([answering, watch], return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                raise ClientGoneError
            answering.result()
        finally:
            answering.cancel()
            watch.cancel()
            for flight in choices.flights:
                self._ingress.leave(flight)

    async def _chosen(self, choices: Choices, said: Headers, send: Send) -> None:
        await choices.begin(self._intake)
        with self._ingress.kept_alive(choices):
            await choices.run(send, said, patience=self._ingress.keepalive_s)

    async def _begin(self, read: Read, exchange: Exchange, watch: asyncio.Future[None]) -> Flight:
        """Begin the turn while its client waits. Raises ClientGoneError, and TreadleError."""
        begun = asyncio.ensure_future(self._intake.begin(read, exchange))
        taken = False
        try:
            news: list[asyncio.Future[Any]] = [begun, watch]
            await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)
            if not begun.done():
                raise ClientGoneError
            taken = True
            return begun.result()
        finally:
            if not taken:
                begun.cancel()
                begun.add_done_callback(self._never_wanted)

    def _never_wanted(self, begun: asyncio.Future[Flight]) -> None:
        """A turn that was begun in the moment in which its client left."""
        if not begun.cancelled() and begun.exception() is None:
            self._ingress.leave(begun.result())

    async def _in_background(self, read: Read, said: Headers, send: Send) -> None:
        """The turn goes on whatever becomes of this connection."""
        run = await self._background.begin(read)
        if not read.turn.stream:
            await respond(send, 200, {"content-type": "application/json", **said}, run.body)
            return
        await start(send, 200, {**SSE_HEADERS, **said})
        async for events in follow(run.log, 0, self._ingress.keepalive_s):
            await send({"type": "http.response.body", "body": events, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def until_gone(receive: Receive) -> None:
    """Return when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def saying(send: Send, said: Headers) -> Send:
    """A `send` whose response has these headers too, where it has not its own."""
    extra = [(name.encode(), value.encode("latin-1")) for name, value in said.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message.get("headers", ())}
            added = [(name, value) for name, value in extra if name not in own]
            message["headers"] = [*message.get("headers", ()), *added]
        await send(message)

    return sending
