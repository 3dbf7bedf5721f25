"""News: tells every open console what has changed, from one look at the store a second.

A reader has a bounded queue. One that does not keep up loses what it did not read and is told so,
and reads the pages anew; nobody waits for it. Nor does one that comes (back) know what changed
before: it is told first that it missed something.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from actors.console import Console
from actors.fleet_load import ModelLoad
from turns.errors import OverloadedError

log = logging.getLogger(__name__)

Topic = Literal["turns", "fleet"]
FleetOf = Callable[[], Awaitable[list[ModelLoad]]]

EVERY = 1.0
READERS = 64
WAITING = 16
"""News that wait for one reader, at most."""
KEEP_ALIVE = 10.0
LIFE = 120.0
"""Seconds after which a reader is sent away and comes back: an ingress that drains waits for it."""


class Changed(Struct):
    """Sessions in which turns ended or are in the air; all of them where `missed`. So many turns
    are in the air; None where that is not known.
    """

    sessions: list[str]
    live: int | None
    missed: bool = False


class Reader:
    """One open console."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.is_new = True
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(WAITING)

    def tell(self, piece: bytes) -> None:
        if self._queue.full():
            while not self._queue.empty():
                self._queue.get_nowait()
            piece = event("changed", Changed([], None, missed=True))
        self._queue.put_nowait(piece)

    async def pieces(
        self, *, life: float = LIFE, every: float = KEEP_ALIVE
    ) -> AsyncIterator[bytes]:
        """SSE, until the end of its life."""
        end = asyncio.get_running_loop().time() + life
        yield b"retry: 1000\n\n"
        while (left := end - asyncio.get_running_loop().time()) > 0:
            try:
                yield await asyncio.wait_for(self._queue.get(), min(left, every))
            except TimeoutError:
                yield b": still here\n\n"


class News:
    """One per ingress; looks while somebody reads."""

    def __init__(self, console: Console, fleet: FleetOf, *, every: float = EVERY) -> None:
        self._console = console
        self._fleet = fleet
        self._every = every
        self._readers: set[Reader] = set()
        self._looking: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def reading(self, topic: Topic) -> AsyncIterator[Reader]:
        """Raises OverloadedError where too many read."""
        if len(self._readers) >= READERS:
            raise OverloadedError("too many consoles are open; close some", retry_after=30)
        reader = Reader(topic)
        self._readers.add(reader)
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look_forever())
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            if not self._readers and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look_forever(self) -> None:
        seen: set[str] | None = None
        air: frozenset[str] = frozenset()
        while True:
            try:
                if self._reads("turns"):
                    seen, air = await self._turns(seen, air)
                if self._reads("fleet"):
                    self._tell("fleet", event("fleet", await self._fleet()))
            except Exception as error:  # noqa: BLE001 - the store or the router may be away
                log.debug("the console's news: %r", error)
            await asyncio.sleep(self._every)

    async def _turns(
        self, seen: set[str] | None, air: frozenset[str]
    ) -> tuple[set[str], frozenset[str]]:
        feed, live = await self._console.ended(), await self._console.live()
        fresh = [] if seen is None else [entry for entry in feed if entry not in seen]
        now = frozenset(line.session for line in live.lines)
        sessions = {entry.rpartition("/")[2] for entry in fresh} | now | air
        self._tell_turns(Changed(sorted(sessions), live.count))
        return set(feed), now

    def _tell_turns(self, changed: Changed) -> None:
        self._console.renew()  # who reads the pages at this word must see what it is of
        piece = event("changed", changed)
        first = event("changed", replace(changed, missed=True))
        for reader in self._readers:
            if reader.topic == "turns" and (reader.is_new or changed.sessions):
                reader.tell(first if reader.is_new else piece)
                reader.is_new = False

    def _reads(self, topic: Topic) -> bool:
        return any(reader.topic == topic for reader in self._readers)

    def _tell(self, topic: Topic, piece: bytes) -> None:
        for reader in self._readers:
            if reader.topic == topic:
                reader.tell(piece)


def event(name: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data))
