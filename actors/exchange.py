"""One request and its response: the sinks that turn a turn's events into the API's own bytes.

Nothing is sent before the first event, so a turn that fails at once answers with a status of its
own; a long prefill starts the stream with keep-alives instead. A whole answer is the fold of the
same events. What must be kept of a turn is kept before its client hears that it is over: the
client may go on from it at once.
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from actors.flights import Flight
from actors.pace import Pace
from actors.reception import ClientGoneError
from actors.stream import Brake, Send, Writer
from observe.record import Timeline
from protocols.protocol import Encoder, Protocol
from turns.errors import EngineError, OverloadedError, TreadleError, UnavailableError
from turns.events import Event, TurnFailed, TurnStarted
from turns.reply import Fold, Reply

Landing = Callable[[Reply], Awaitable[None]]

FIRST = asyncio.FIRST_COMPLETED
BEHIND_FOR = 60.0
"""Seconds after which a client that reads less than it is sent is given up."""

REQUEST_ID = "request-id"
"""The header by which a client can name its request to us; every response has it."""

TRUNCATED = "x-treadle-truncated"
"""How many messages were left out of the prompt, where the client allowed it."""

SSE_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


class Silent(typing.Protocol):
    """A response that may be silent for long."""

    def keep_alive(self, now: float, every: float) -> None:
        """Write an event that says nothing where nothing was written for `every` seconds."""


async def respond(send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Send a whole response."""
    await start(send, status, {"content-length": str(len(body)), **headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(
    send: Send, protocol: Protocol, error: TreadleError, headers: Mapping[str, str]
) -> None:
    """Answer with an error as the API spells it; `headers` say the request's id."""
    status, own, body = protocol.error(error, request_id=headers[REQUEST_ID])
    kept = {name: value for name, value in own.items() if not name.endswith(REQUEST_ID)}
    await respond(send, status, {**kept, **headers}, body)


async def start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    raw = [(key.encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})


def failure(event: TurnFailed, retry_after: int) -> TreadleError:
    """The error behind a failed turn, with what the client may do."""
    if event.kind in ("overloaded", "unavailable"):
        tree = OverloadedError if event.kind == "overloaded" else UnavailableError
        return tree(event.message, retry_after=retry_after)
    error = EngineError(event.message)
    error.kind = event.kind
    return error


def still_behind(writer: Writer | None, since: float, now: float) -> float:
    """Since when the stream's client is behind; 0 where it is not.

    One that has not caught up for `BEHIND_FOR` is given up: its writer has then overflowed.
    """
    if writer is None or not writer.behind:
        return 0.0
    since = since or now
    if now - since > BEHIND_FOR:
        writer.give_up()
    return since


def failed_at_once(events: list[Event]) -> TurnFailed | None:
    """The failure of a turn that died before it said anything; None where it did not."""
    match events:
        case [TurnFailed() as failed] | [TurnStarted(), TurnFailed() as failed]:
            return failed
        case _:
            return None


class Exchange:
    """What all kinds of answer share: the fold, the first event, the end.

    `landing` is awaited with the reply of a turn that came to its end, before the client is told;
    so is `keeping`, what is being written of it, where the turn `keeps` anything. `dropped` of the
    conversation's messages did not fit into the model's window. `timeline` is told each step where
    somebody wants to know when what came.
    """

    def __init__(self) -> None:
        self.landing: Landing | None = None
        self.keeps = False
        self.dropped = 0
        self.keeping: asyncio.Future[Any] | None = None
        self.timeline: Timeline | None = None
        loop = asyncio.get_running_loop()
        self.first: asyncio.Future[Event] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.fold = Fold()
        self.pace = Pace()

    def take(self, events: list[Event]) -> None:
        """The events of one step."""
        raise NotImplementedError

    def see(self, events: list[Event]) -> None:
        self.pace.step(events)
        add = self.fold.add
        for event in events:
            add(event)
        if self.timeline is not None:
            self.timeline.step(events)
        if not self.first.done():
            self.first.set_result(events[0])

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    async def land(self) -> Reply:
        """Wait for the end, and for what is kept of the turn; gives its reply."""
        await self.ended
        reply = self.fold.reply()
        if self.keeping is not None:
            await asyncio.wait([self.keeping])
        if self.landing is not None and (reply.stop or reply.failed) is not None:
            await self.landing(reply)
        return reply


class WholeExchange(Exchange):
    """A non-streaming answer: nothing but the fold."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self._encoder = encoder

    def take(self, events: list[Event]) -> None:
        self.see(events)
        reply = self.fold.reply()
        if reply.stop is not None or reply.failed is not None:
            self.end()

    async def run(
        self, send: Send, protocol: Protocol, flight: Flight, headers: Mapping[str, str]
    ) -> None:
        reply = await self.land()
        if reply.failed is not None:
            error = failure(reply.failed, flight.retry_after)
            await refuse(send, protocol, error, headers)
            return
        status, body = self._encoder.whole(reply)
        await respond(send, status, {"content-type": "application/json", **headers}, body)


class StreamExchange(Exchange):
    """A streaming answer: each step's events are encoded and written in the same pass."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self._encoder = encoder
        self._early: list[Event] = []
        self._writer: Writer | None = None
        self._last = b""
        self._behind = 0.0  # since when its client has been behind
        self.brake: Brake = lambda _: None
        self.last_write = 0.0

    def take(self, events: list[Event]) -> None:
        self.see(events)
        if self._writer is None:
            self._early += events
            return
        self._write(self._writer, events)

    def _write(self, writer: Writer, events: list[Event]) -> None:
        data = self._encoder.encode(events)
        if self._encoder.finished and (self.keeps or self.landing is not None):
            self._last = data
            self.end()
            return
        if data:
            writer.write(data)
            self.last_write = asyncio.get_running_loop().time()
        if self._encoder.finished or writer.overflowed:
            self.end()

    def keep_alive(self, now: float, every: float) -> None:
        """Write a real protocol event when nothing was written for `every` seconds.

        A client that has not caught up for `BEHIND_FOR` is given up.
        """
        writer = self._writer
        self._behind = still_behind(writer, self._behind, now)
        if writer is None:
            return
        if writer.overflowed:
            self.end()
        elif not self._behind and now - self.last_write >= every and not self._last:
            writer.write(self._encoder.keepalive())
            self.last_write = now

    async def run(
        self,
        send: Send,
        protocol: Protocol,
        flight: Flight,
        headers: Mapping[str, str],
        *,
        patience: float,
    ) -> None:
        """Stream to the end. Waits `patience` seconds for a first event before it says 200."""
        early_end: list[asyncio.Future[Any]] = [self.first, self.ended]
        await asyncio.wait(early_end, timeout=patience, return_when=FIRST)
        if (failed := failed_at_once(self._early)) is not None:
            await refuse(send, protocol, failure(failed, flight.retry_after), headers)
            return
        await start(send, 200, {**SSE_HEADERS, **headers})
        writer = Writer(send, brake=self.brake)
        if not self._early:
            writer.write(self._encoder.keepalive())
        early, self._early = self._early, []
        self._writer = writer
        self.last_write = asyncio.get_running_loop().time()
        if early:
            self._write(writer, early)
        await self.land()
        if self._last:
            writer.write(self._last)
        await writer.drained()
        if writer.overflowed:  # an ending would wait for a reader that does not read
            raise ClientGoneError
        await send({"type": "http.response.body", "body": b""})
