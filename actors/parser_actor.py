"""The parser actor: owns parsing for one engine replica; nothing above it looks for markers.

A plain Ray actor, created and owned by its engine replica (so it dies with it). Frames are pushed
to it over a socket, or by one call a step; each ingress reads its events as one stream of object
refs, or over a socket where it is on the same node (docs/decisions/0007-near-lanes.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import ray

from actors.lanes import LaneClosedError, Order, Outbox
from actors.messages import decode_step
from actors.near_lanes import Receiving, Sending, listen
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
        outbox = self._outboxes.get(ingress) or self._unread(ingress)
        try:
            outbox.add(batches)
        except LaneClosedError:
            self._forget(ingress, outbox)

    async def events(self, ingress: str) -> AsyncIterator[bytes]:
        """The lane to one ingress. A second reader of the same name replaces the first."""
        outbox = self._unread(ingress)
        try:
            async for item in outbox.items():
                yield item
        finally:
            self._forget(ingress, outbox)

    async def events_near(self, ingress: str, node: str) -> str:
        """The same lane by a socket: the path at which an ingress of that node is to connect; ""
        where it is not on this node.
        """
        if node != ray.get_runtime_context().get_node_id():
            return ""
        outboxes: list[Outbox] = []

        def opened() -> None:
            outboxes.append(self._unread(ingress))
            outboxes[0].attach(sending.push, sending.close)

        def lost(_: BaseException) -> None:
            for outbox in outboxes:
                self._forget(ingress, outbox)

        sending = Sending(lost, opened)
        return await listen(sending)

    def _unread(self, ingress: str) -> Outbox:
        """What waits for a reader of that name. One that had a reader is given up, and its turns,
        which go on elsewhere: their ingress has lost the lane.
        """
        outbox = self._outboxes.get(ingress)
        if outbox is not None and outbox.read:
            self._forget(ingress, outbox)
        return self._outboxes.setdefault(ingress, Outbox())

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
