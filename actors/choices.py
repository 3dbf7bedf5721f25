"""Several replies to one request (`n` of Chat): as many turns, folded into one response.

They begin together and share a prompt, of which all but the first find the tokens in the cache. One
that fails fails them all; a client that leaves ends them all, one that is behind holds them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from actors.exchange import (
    FIRST,
    SSE_HEADERS,
    Exchange,
    failure,
    refuse,
    respond,
    start,
    still_behind,
)
from actors.flights import Flight
from actors.intake import Intake, Read
from actors.reception import ClientGoneError
from actors.stream import Send, Writer
from protocols.chat.choice import many
from protocols.chat.choices import ChoicesEncoder
from turns.events import Event, TurnFailed

Hold = Callable[[Flight, bool], None]
"""Has a turn wait for its reader, or go on."""


class Part(Exchange):
    """One of the turns; its events go on to all of them together."""

    def __init__(self, together: Choices, index: int) -> None:
        super().__init__()
        self._together = together
        self._index = index

    def take(self, events: list[Event]) -> None:
        self.see(events)
        self._together.hear(self._index, events)
        reply = self.fold.reply()
        if reply.stop is not None or reply.failed is not None:
            self.end()


class Choices:
    """The response to one such request."""

    def __init__(self, read: Read) -> None:
        self._read = read
        turns = many(read.turn)
        self._reads = [replace(read, turn=turn) for turn in turns]
        self._encoder = ChoicesEncoder(
            turns, created=read.created, model=read.turn.model, seal=read.seal
        )
        self._parts = [Part(self, index) for index in range(len(turns))]
        self._early: list[bytes] = []
        self._writer: Writer | None = None
        self._behind = 0.0  # since when its client has been behind
        self._hold: Hold = lambda _flight, _on: None
        self._failed: asyncio.Future[TurnFailed] = asyncio.get_running_loop().create_future()
        self.flights: list[Flight] = []
        self.last_write = 0.0

    async def begin(self, intake: Intake) -> None:
        """Put all turns in the air; what began is in `flights`, also where one was refused."""
        self._hold = intake.ingress.brake
        for read, part in zip(self._reads, self._parts, strict=True):
            self.flights.append(await intake.begin(read, part))

    def hear(self, index: int, events: list[Event]) -> None:
        """Events of one turn."""
        last = events[-1]
        if isinstance(last, TurnFailed) and not self._failed.done():
            self._failed.set_result(last)
        if not self._read.turn.stream:
            return
        data = self._encoder.encode(index, events)
        if self._writer is None:
            self._early.append(data)
        elif data:
            self._writer.write(data)
            self.last_write = asyncio.get_running_loop().time()
            if self._writer.overflowed:
                self._end()

    def keep_alive(self, now: float, every: float) -> None:
        """Write a chunk that says nothing when nothing was written for `every` seconds.

        A client that has been behind for too long is given up.
        """
        writer = self._writer
        self._behind = still_behind(writer, self._behind, now)
        if writer is None:
            return
        if writer.overflowed:
            self._end()
        elif not self._behind and now - self.last_write >= every:
            writer.write(self._encoder.keepalive())
            self.last_write = now

    def _brake(self, on: bool) -> None:
        """What one of them says stands behind what all have said: one alone cannot go on."""
        for flight in self.flights:
            self._hold(flight, on)

    def _end(self) -> None:
        for part in self._parts:
            part.end()

    async def run(self, send: Send, headers: Mapping[str, str], *, patience: float) -> None:
        """Answer, once all turns are in the air."""
        if self._read.turn.stream:
            await self._stream(send, headers, patience)
        else:
            await self._whole(send, headers)

    async def _whole(self, send: Send, headers: Mapping[str, str]) -> None:
        await self._landed()
        if self._failed.done():
            await self._refuse(send, headers)
            return
        status, body = self._encoder.whole([part.fold.reply() for part in self._parts])
        await respond(send, status, {"content-type": "application/json", **headers}, body)

    async def _stream(self, send: Send, headers: Mapping[str, str], patience: float) -> None:
        first: list[asyncio.Future[Any]] = [self._failed, *(part.first for part in self._parts)]
        await asyncio.wait(first, timeout=patience, return_when=FIRST)
        if self._failed.done():
            await self._refuse(send, headers)
            return
        await start(send, 200, {**SSE_HEADERS, **headers})
        self._writer = Writer(send, brake=self._brake)
        self._writer.write(b"".join(self._early) or self._encoder.keepalive())
        self.last_write = asyncio.get_running_loop().time()
        await self._landed()
        await self._writer.drained()
        if self._writer.overflowed:  # an ending would wait for a reader that does not read
            raise ClientGoneError
        await send({"type": "http.response.body", "body": b""})

    async def _landed(self) -> None:
        """All have landed, or one has failed."""
        landing = asyncio.gather(*(part.land() for part in self._parts))
        waiting: list[asyncio.Future[Any]] = [landing, self._failed]
        try:
            await asyncio.wait(waiting, return_when=FIRST)
        finally:
            landing.cancel()

    async def _refuse(self, send: Send, headers: Mapping[str, str]) -> None:
        error = failure(self._failed.result(), max(f.retry_after for f in self.flights))
        await refuse(send, self._read.api, error, headers)
