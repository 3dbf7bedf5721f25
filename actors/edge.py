"""The edge: the ASGI application that harnesses talk to.

Turns are served here on the bare ASGI messages, since every layer between costs each token; all
that is not a turn (models, health, metrics, documentation) goes to the FastAPI application.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from actors.conductor import Flight
from actors.exchange import StreamExchange, WholeExchange, header_map, respond
from actors.ingress import Ingress
from actors.stream import Send
from protocols.protocol import Protocol
from protocols.registry import APIS
from turns.errors import TooLargeError, TreadleError
from turns.turn import Api

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

INTERNAL = "something went wrong inside the server; the request id finds it in the log"


class Edge:
    """Routes by path: one table entry per API."""

    def __init__(self, ingress: Ingress, pages: AsgiApp) -> None:
        self._ingress = ingress
        self._pages = pages
        self._turns = {api.path: (name, api) for name, api in APIS.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._turns.get(local_path(scope)) if scope["type"] == "http" else None
        if found is None or scope["method"] != "POST":
            await self._pages(scope, receive, send)
            return
        await self._turn(*found, scope, receive, send)

    async def _turn(
        self, name: Api, api: Protocol, scope: Scope, receive: Receive, send: Send
    ) -> None:
        turn_id = uuid.uuid4().hex
        try:
            exchange, flight = await self._begin(name, api, scope, receive, turn_id)
        except ClientGoneError:
            return
        except TreadleError as error:
            await respond(send, *api.error(error, request_id=turn_id))
            return
        except Exception as error:  # noqa: BLE001 - a defect of ours must not look like a cut line
            self._ingress.defect(turn_id, error)
            await respond(send, *api.error(TreadleError(INTERNAL), request_id=turn_id))
            return
        try:
            if isinstance(exchange, StreamExchange):
                with self._ingress.kept_alive(exchange):
                    await exchange.run(send, api, flight, patience=self._ingress.keepalive_s)
            else:
                await exchange.run(send, api, flight)
        finally:
            self._ingress.leave(flight)

    async def _begin(
        self, name: Api, api: Protocol, scope: Scope, receive: Receive, turn_id: str
    ) -> tuple[StreamExchange | WholeExchange, Flight]:
        ingress = self._ingress
        try:
            body = await read_body(receive, ingress.max_body)
            headers = header_map(scope)
            turn = api.decode(body, headers, turn_id=turn_id)
            model = ingress.model(turn.model)
        except TreadleError as error:
            ingress.refused(name, turn_id, error)
            raise
        encoder = api.encoder(turn, created=ingress.now(), model=turn.model)
        exchange = StreamExchange(encoder) if turn.stream else WholeExchange(encoder)
        harness = headers.get("user-agent", "")[:80]
        flight = await ingress.begin(model, turn, exchange, size=len(body), harness=harness)
        return exchange, flight


def local_path(scope: Scope) -> str:
    """The path below the prefix that the application is mounted at."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class ClientGoneError(Exception):
    """The client closed before its request was whole."""


async def read_body(receive: Receive, limit: int) -> bytes:
    """The request body, at most `limit` bytes."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise TooLargeError(f"the request body is over {limit} bytes; send a smaller one")
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)
        await asyncio.sleep(0)
