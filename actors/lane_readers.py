"""Lane readers: an ingress's ends of the lanes from the parser actors of its fleets.

A lane is opened as soon as its replica is a member of the fleet, not by the first turn (a cold
lane would cost that turn over a second), and is read until the replica leaves. When it breaks
while the replica stays, its turns fail and it is opened again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import Any

import ray

from actors.conductor import Conductor
from actors.fleet import Fleet
from actors.lane_pools import NAMESPACE
from actors.messages import ReplicaCard, decode_batches
from actors.near_lanes import LaneBrokenError, Receiving, connect
from observe.seen import LaneLost
from observe.taps import Tap

log = logging.getLogger(__name__)

CREDIT = 64
"""Items a parser may be ahead of this ingress. Without a bound a stream outlives its reader."""

REOPEN_AFTER = 0.2
"""Seconds before a broken lane is tried again; its parser takes about that long to be replaced."""


class LaneReaders:
    """All lanes into one ingress. `ingress` is the name under which parsers know it; `near` lets it
    read parsers of its own node over a socket.
    """

    def __init__(self, conductor: Conductor, ingress: str, tap: Tap, *, near: bool = True) -> None:
        self._near = near
        self._tap = tap
        self._conductor = conductor
        self._ingress = ingress
        self._readers: dict[str, asyncio.Task[None]] = {}
        self.open: set[str] = set()

    def hear(self, card: ReplicaCard) -> bool:
        """Whether the events of turns on that replica would come here now."""
        return not card.parsers or any(name in self.open for name in card.parsers)

    def follow(self, fleet: Fleet) -> None:
        """Keep a lane to every parser of the fleet from now on."""
        loop = asyncio.get_running_loop()

        def changed(fleet: Fleet, came: frozenset[str], left: frozenset[str]) -> None:
            loop.call_soon_threadsafe(self._changed, fleet, came, left)

        fleet.listen(changed)

    def _changed(self, fleet: Fleet, came: frozenset[str], left: frozenset[str]) -> None:
        for replica in came:
            card = fleet.cards.get(replica)
            for name in card.parsers if card else ():
                if name not in self._readers:
                    self._readers[name] = asyncio.ensure_future(self._read(name, replica, fleet))

    async def _read(self, name: str, replica: str, fleet: Fleet) -> None:
        try:
            while replica in fleet.cards:
                try:
                    await self._read_once(name)
                except (ray.exceptions.RayError, ValueError) as error:  # ValueError: no such actor
                    reason = type(error).__name__
                else:
                    reason = "it ended"
                self._close(name, reason)
                await asyncio.sleep(REOPEN_AFTER)
        finally:
            self._close(name, "its replica left")
            self._readers.pop(name, None)

    def _close(self, name: str, reason: str) -> None:
        """Fail the turns of a lane that broke; one that was not open has none."""
        if name in self.open:
            self.open.discard(name)
            lost = self._conductor.lane_lost(name)
            self._tap.lane_lost(LaneLost(name, time.time(), reason, lost))

    async def _read_once(self, name: str) -> None:
        actor: Any = ray.get_actor(name, namespace=NAMESPACE)
        if not (self._near and await self._read_near(actor, name)):
            await self._read_refs(actor, name)

    async def _read_near(self, actor: Any, name: str) -> bool:
        """Read a socket to its end; False where the parser is not on this node."""
        ended: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

        def over(error: BaseException) -> None:
            if not ended.done():
                ended.set_result(error)

        end = Receiving(partial(self._take, name), over)
        node = ray.get_runtime_context().get_node_id()
        if not await connect(await actor.events_near.remote(self._ingress, node), end):
            return False
        try:
            error = await ended
        finally:
            end.close()
        if not isinstance(error, OSError | LaneBrokenError):
            log.error("a defect on the lane %s", name, exc_info=error)
        return True

    def _take(self, name: str, item: bytes) -> None:
        batches = decode_batches(item)
        if name not in self.open:
            self.open.add(name)
            self._tap.lane_opened(name, time.time())
        self._tap.events(sum(len(batch.events) for batch in batches))
        self._conductor.deliver(batches, name)

    async def _read_refs(self, actor: Any, name: str) -> None:
        stream = actor.events.options(
            num_returns="streaming", _generator_backpressure_num_objects=CREDIT
        ).remote(self._ingress)
        try:
            async for ref in stream:
                self._take(name, await ref)
        finally:
            ray.cancel(stream)
