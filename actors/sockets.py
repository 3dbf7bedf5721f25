"""The WebSocket mode of the Responses API: one connection, one response after the other.

The connection remembers its latest response, so that the next request sends only what is new even
where nothing is stored. `generate: false` has the prompt prefilled and nothing said.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.event_log import EventLog
from actors.exchange import WholeExchange, failure
from actors.flights import Flight
from actors.intake import Intake, Read
from actors.reception import (
    CALLER_NOW,
    Asked,
    ClientGoneError,
    Scope,
    Who,
    caller,
    header_map,
    local_path,
    request_id,
)
from actors.response_store import Earlier
from actors.socket_pace import SocketPace
from protocols import ids
from protocols.bodies import invalid
from protocols.responses import socket, stored
from turns.errors import AuthenticationError, ForbiddenError, TreadleError
from turns.events import TurnFailed
from turns.reply import Reply

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PATH = "/v1/responses"
WAITING = 16
"""Frames that may wait while a response runs; a client that sends more waits itself."""

NO_SUCH_PATH = 4404
POLICY_VIOLATION = 1008
INTERNAL = "something went wrong inside the server; the request id finds it in the log"


class _Kind(msgspec.Struct):
    type: str = ""


_kind = msgspec.json.Decoder(_Kind).decode


class Sockets:
    """The ASGI application of WebSocket connections."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        if local_path(scope) != PATH:
            await send({"type": "websocket.close", "code": NO_SUCH_PATH})
            return
        await send({"type": "websocket.accept"})
        headers = header_map(scope)
        asked = Asked(request_id(headers, uuid.uuid4().hex), headers, b"", caller(scope, headers))
        await Connection(self._intake, asked, send, scope.get(CALLER_NOW)).run(receive)


class Connection:
    """One client. Frames are answered in their order; leaving ends what runs. `who` gives who calls
    at each of them: a key may end, or change, while the connection is open.
    """

    def __init__(self, intake: Intake, asked: Asked, send: Send, who: Who | None) -> None:
        self._intake = intake
        self._who = who
        self._asked = asked
        self._send = send
        self._known: dict[str, Earlier] = {}
        self._frames: asyncio.Queue[bytes] = asyncio.Queue(WAITING)

    async def run(self, receive: Receive) -> None:
        """Until the client leaves, or is given up."""
        both = [asyncio.ensure_future(one) for one in (self._answer_all(), self._listen(receive))]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _listen(self, receive: Receive) -> None:
        while (message := await receive())["type"] != "websocket.disconnect":
            text = message.get("text")
            frame = message.get("bytes") if text is None else text.encode()
            await self._frames.put(frame or b"")

    async def _answer_all(self) -> None:
        while True:
            frame = await self._frames.get()
            turn_id = uuid.uuid4().hex
            try:
                if not await self._let_in():
                    return
                await self._answer(frame, turn_id)
            except TreadleError as error:
                await self._say([socket.error_frame(error)])
            except (OSError, ClientGoneError):  # the connection is of no use
                return
            except Exception as error:  # noqa: BLE001 - the connection must outlive our defects
                self._intake.ingress.defect(turn_id, error)
                await self._say([socket.error_frame(TreadleError(INTERNAL))])

    async def _let_in(self) -> bool:
        """Whether the key that opened the connection is still good: its end is the connection's."""
        if self._who is None:
            return True
        try:
            self._asked = replace(self._asked, caller=await self._who())
        except (AuthenticationError, ForbiddenError) as error:
            await self._say([socket.error_frame(error)])
            await self._send({"type": "websocket.close", "code": POLICY_VIOLATION})
            return False
        return True

    async def _answer(self, frame: bytes, turn_id: str) -> None:
        self._check(frame)
        asked = replace(self._asked, body=frame)
        read = await self._intake.read("responses", asked, turn_id=turn_id, known=self._known)
        if read.turn.echo.get("background"):
            raise invalid("background", "It is not for a WebSocket; send the request over HTTP")
        warming = read.turn.echo.get("generate") is False
        reply = await (self._warm(read) if warming else self._stream(read))
        if reply is not None:
            self._remember(read, reply)

    def _check(self, frame: bytes) -> None:
        if len(frame) > self._intake.ingress.limits.body:
            raise invalid("", "The frame is too large; send less")
        try:
            kind = _kind(frame).type
        except (msgspec.DecodeError, RecursionError):
            kind = socket.CREATE  # the decoder says better what is wrong with it
        if kind != socket.CREATE:
            raise socket.unknown_frame(kind)

    async def _warm(self, read: Read) -> Reply | None:
        """Prefill: the shortest turn there is, of which nothing is shown."""
        turn = read.turn
        read.turn = replace(turn, sampling=replace(turn.sampling, max_tokens=1), store=False)
        exchange = WholeExchange(read.encoder())
        flight = await self._intake.begin(read, exchange)
        try:
            reply = await exchange.land()
        finally:
            self._intake.ingress.leave(flight)
        if reply.failed is not None:
            raise failure(reply.failed, flight.retry_after)
        read.turn = turn
        await self._say(socket.warmed(read.encoder(), reply.usage.input))
        return Reply((), "end", reply.usage)

    async def _stream(self, read: Read) -> Reply | None:
        """The response's events; its reply, None where it failed."""
        log = EventLog(read.encoder())
        flight = await self._intake.begin(read, log)
        closing = asyncio.ensure_future(self._close(log))
        try:
            await asyncio.wait([log.first], timeout=self._intake.ingress.keepalive_s)
            if log.first.done() and isinstance(first := log.first.result(), TurnFailed):
                raise failure(first, flight.retry_after)
            await self._pass_on(log, flight)
            reply = await closing
        finally:
            closing.cancel()
            self._intake.ingress.leave(flight)
        return None if reply.failed is not None else reply

    async def _pass_on(self, log: EventLog, flight: Flight) -> None:
        """All events, as fast as the client reads. Raises ClientGoneError where it does not."""
        pace = SocketPace(log, partial(self._intake.ingress.brake, flight))

        async def passing() -> None:
            async for events in log.read(every=self._intake.ingress.keepalive_s):
                data = b"".join(events)
                await self._say(socket.frames(data))
                pace.sent += len(data)

        passed, lost = asyncio.ensure_future(passing()), asyncio.ensure_future(pace.lost())
        try:
            await asyncio.wait([passed, lost], return_when=asyncio.FIRST_COMPLETED)
            if not passed.done():
                raise ClientGoneError
            passed.result()
        finally:
            passed.cancel()
            lost.cancel()

    async def _close(self, log: EventLog) -> Reply:
        reply = await log.land()
        log.close()
        return reply

    def _remember(self, read: Read, reply: Reply) -> None:
        """The latest response alone: it is what the next request goes on from."""
        response_id = ids.response(read.turn.id)
        own = stored.input_items(read.asked.body, read.turn.id)
        output = stored.output_items(read.kept(reply))
        before = read.earlier
        self._known = {
            response_id: Earlier(
                items=(*before.items, *own, *output),
                responses=(*before.responses, response_id),
                model=read.turn.model,
                found=True,
                stored=read.turn.store and before.stored,
            )
        }

    async def _say(self, frames: list[str]) -> None:
        for frame in frames:
            await self._send({"type": "websocket.send", "text": frame})
