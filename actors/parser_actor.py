"""The parser actor: owns parsing for one engine replica; nothing above it looks for markers.

A plain Ray actor, created and owned by its engine replica (so it dies with it). Frames are pushed
to it over a socket, or by one call a step; each ingress reads its events as one stream of object
refs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from actors.lanes import LaneClosedError, Order, Outbox
from actors.messages import decode_step
from actors.near_lanes import Receiving, listen
from actors.parsing import Parsing
from actors.serving import ModelFolder
from turns.frames import EventBatch


class ParserActor:
    """`frames` and `events` are the two ends; `hold` is a call that ends only with the actor."""

    def __init__(self, folder: ModelFolder) -> None:
        self._parsing = Parsing(*folder.parser_parts())
        self._order = Order()
        self._outboxes: dict[str, Outbox] = {}

    async def frames(self, data: bytes) -> None:
        """Take one engine step, in whatever order Ray runs these calls."""
        self._take(data)

    async def frames_near(self) -> str:
        """The path at which an engine on this node is to connect, to send its steps there."""
        return await listen(Receiving(self._take, lambda _: None))

    def _take(self, data: bytes) -> None:
        for step in self._order.take(decode_step(data)):
            for ingress, batches in self._parsing.take(step).items():
                self._hand_on(ingress, batches)

    def _hand_on(self, ingress: str, batches: list[EventBatch]) -> None:
        outbox = self._outboxes.get(ingress)
        if outbox is None:
            outbox = self._outboxes[ingress] = Outbox()
        try:
            outbox.add(batches)
        except LaneClosedError:
            self._forget(ingress, outbox)

    async def events(self, ingress: str) -> AsyncIterator[bytes]:
        """The lane to one ingress. A second reader of the same name replaces the first."""
        outbox = self._outboxes.get(ingress)
        if outbox is None or outbox.closed:
            outbox = self._outboxes[ingress] = Outbox()
        try:
            async for item in outbox.items():
                yield item
        finally:
            self._forget(ingress, outbox)

    async def hold(self) -> None:
        """Never returns: a caller that waits for it learns at once when the actor dies."""
        await asyncio.Event().wait()

    async def ready(self) -> int:
        """Answers when the actor is up: the number of turns it has open."""
        return len(self._parsing)

    def _forget(self, ingress: str, outbox: Outbox) -> None:
        outbox.close()
        if self._outboxes.get(ingress) is outbox:
            del self._outboxes[ingress]
            self._parsing.forget(ingress)
