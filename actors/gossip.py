"""Gossip: what each ingress tells the others, through the store and never on a request's way.

Each puts what it has to say under its own name, again and again; a name that fell silent is
forgotten. What is heard is as old as a beat. Without a store everybody knows of himself alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from sessions.records import Kind
from sessions.store import Store, write
from turns.errors import TreadleError

log = logging.getLogger(__name__)

SAID = Kind("gossip", bytes)
NAMES = Kind("gossip_names", str)
ALL = "all"
BEAT_S = 1.0
SILENT_BEATS = 15
"""Beats after which somebody is silent who should have spoken again: what he said is forgotten."""

CALL_BEATS = 30
"""Beats between two times that a name is called out."""

MOST = 256
"""Names that are remembered."""


class Gossip:
    """`name` is this process's own. A topic is told every so many beats, if there is anything."""

    def __init__(self, store: Store, name: str, *, beat: float = BEAT_S) -> None:
        self.name = name
        self._store = store
        self._beat = beat
        self._topics: dict[str, tuple[Callable[[], bytes], int]] = {}
        self._heard: dict[str, Mapping[str, bytes]] = {}
        self._beats = 0

    def tell(self, topic: str, say: Callable[[], bytes], *, every: int = 1) -> None:
        """From now on, tell what `say` gives and hear what others say of it; b"" is nothing."""
        self._topics[topic] = (say, every)
        self._heard[topic] = {}

    def heard(self, topic: str) -> Mapping[str, bytes]:
        """What the others said last, by their names."""
        return self._heard[topic]

    async def once(self) -> None:
        """One beat. A store that is away leaves what was heard before to grow old."""
        beat, self._beats = self._beats, self._beats + 1
        if beat % CALL_BEATS == 0:
            await self._store.append(
                NAMES, "", ALL, [self.name], ttl=4 * CALL_BEATS * self._beat, keep=MOST
            )
        await self._say(beat)
        names = sorted({*await self._store.items(NAMES, "", ALL)} - {self.name})
        for topic, (_, every) in self._topics.items():
            if beat % every == 0:
                found = await self._store.get(SAID, topic, *names) if names else []
                pairs = zip(names, found, strict=True)
                self._heard[topic] = {name: words for name, words in pairs if words is not None}

    async def end(self) -> None:
        """The last word: what was said before it is no longer so, and is heard for a while yet."""
        with contextlib.suppress(TreadleError):
            await self._say(0)

    async def _say(self, beat: int) -> None:
        said = [
            write(SAID, topic, self.name, words, ttl=(every - 1 + SILENT_BEATS) * self._beat)
            for topic, (say, every) in self._topics.items()
            if beat % every == 0 and (words := say())
        ]
        await self._store.put(*said)

    async def run_forever(self) -> None:
        while True:
            try:
                await self.once()
            except (TreadleError, ValueError) as error:
                log.debug("nothing was heard of the other ingresses: %s", error)
            await asyncio.sleep(self._beat)
