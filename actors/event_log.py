"""A turn whose events are kept and read by whoever comes, from any place: for turns that outlive
one HTTP response (background) or travel by another road (WebSocket).

A reader wakes once a step for as many events as there are; the bare HTTP stream, which must not
pay even that, is `actors.exchange.StreamExchange`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from actors.exchange import Exchange
from protocols.protocol import Encoder
from turns.events import Event

END = b"\n\n"


def events_of(raw: bytes) -> list[bytes]:
    """A piece of stream, cut into its events; a comment stays before the event it came with."""
    found: list[bytes] = []
    comments = b""
    for piece in raw.split(END):
        if piece.startswith(b":"):
            comments += piece + END
        elif piece:
            found.append(comments + piece + END)
            comments = b""
    return found


class EventLog(Exchange):
    """`log` has one piece of SSE an event. The terminal event is in it once the turn is kept."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.log: list[bytes] = []
        self.size = 0
        self.over = False
        self._encoder = encoder
        self._last: list[bytes] = []
        self._readers: set[asyncio.Future[None]] = set()

    def take(self, events: list[Event]) -> None:
        self.see(events)
        pieces = events_of(self._encoder.encode(events))
        if self._encoder.finished:
            self._last = pieces
            self.end()
            return
        self._add(pieces)

    def close(self) -> None:
        """What was held back of the end may be read now, and nothing follows it."""
        self.over = True
        self._add(self._last)
        self._last = []

    def keep_alive(self) -> None:
        """Add an event that says nothing."""
        if not self._encoder.finished:
            self._add([self._encoder.keepalive()])

    async def read(self, start: int = 0, *, every: float) -> AsyncIterator[list[bytes]]:
        """The events from number `start` on, as they come, until the last.

        After `every` seconds without one, an event that says nothing is added.
        """
        at = start
        while True:
            if at < len(self.log):
                found, at = self.log[at:], len(self.log)
                yield found
                continue
            if self.over:
                return
            waiting = asyncio.get_running_loop().create_future()
            self._readers.add(waiting)
            try:
                await asyncio.wait([waiting], timeout=every)
            finally:
                self._readers.discard(waiting)
            if not waiting.done():
                self.keep_alive()

    def _add(self, pieces: list[bytes]) -> None:
        self.log += pieces
        self.size += sum(map(len, pieces))
        for waiting in self._readers:
            if not waiting.done():
                waiting.set_result(None)
