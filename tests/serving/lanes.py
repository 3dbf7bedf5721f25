"""A lane to a parser in this process: the same frames, bytes and parsing, no actor between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from actors.lane_pools import OnLost
from actors.lanes import FrameLane, LaneClosedError
from actors.messages import decode_batches, decode_step, encode
from actors.parsing import Parsing
from turns.frames import EventBatch

Deliver = Callable[[list[EventBatch], str], None]


class NearLanes:
    """A LanePool of one lane. `name` is the lane as the ingress knows it."""

    def __init__(self, parsing: Parsing, deliver: Deliver, name: str) -> None:
        self.names: list[str] = []
        self.name = name
        self.dead = False
        self.frozen = False
        self._parsing = parsing
        self._deliver = deliver
        self._lane: FrameLane | None = None

    async def start(self, on_lost: OnLost) -> None:
        def lost(error: BaseException) -> None:
            if self._lane is not None:
                on_lost(self._lane, error)

        self._lane = FrameLane(self._push, on_lost=lost)

    def pick(self, ingress: str) -> FrameLane | None:
        return self._lane if self._lane is not None and not self._lane.lost else None

    def stop(self) -> None:
        self._lane = None

    @property
    def parsing(self) -> int:
        """How many turns the parser has open."""
        return len(self._parsing)

    def _push(self, data: bytes) -> Awaitable[object]:
        if self.dead:
            raise LaneClosedError
        loop = asyncio.get_running_loop()
        acknowledged = loop.create_future()
        if self.frozen:
            return acknowledged
        loop.call_soon(self._hand_on, data, acknowledged)
        return acknowledged

    def _hand_on(self, data: bytes, acknowledged: asyncio.Future[None]) -> None:
        if self.dead:
            acknowledged.set_exception(LaneClosedError())
            acknowledged.exception()  # not every push is asked what became of it
            return
        for batches in self._parsing.take(decode_step(data)).values():
            self._deliver(decode_batches(encode(batches)), self.name)
        acknowledged.set_result(None)
