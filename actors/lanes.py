"""Lanes: one long-lived stream between two actors that carries many turns.

A lane merges what its consumer has not yet taken into one item, so a slow consumer costs memory in
proportion to what it is owed, never one item per token; a consumer that takes nothing at all is
cut off at `bound` batches. Measured choices: docs/decisions/0002-lanes.md.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from actors.messages import Opening, Step, encode
from turns.frames import EventBatch, Frame

ACK_EVERY = 16
"""Pushes between two awaited acknowledgements. Calls of one caller run in order on the callee, so
one ack stands for all pushes before it, and awaiting each would cost a task per step."""


class LaneClosedError(Exception):
    """The other end of the lane is gone, or took nothing for too long."""


class Outbox:
    """A parser's end of the lane to one ingress: events wait here until the stream takes them."""

    def __init__(self, *, bound: int = 100_000) -> None:
        self._batches: list[EventBatch] = []
        self._wake = asyncio.Event()
        self._bound = bound
        self.closed = False

    def add(self, batches: list[EventBatch]) -> None:
        """Hand over the events of one step; the stream sends them in its next item."""
        if len(self._batches) > self._bound:
            self.close()
        if self.closed:
            raise LaneClosedError
        self._batches += batches
        self._wake.set()

    def close(self) -> None:
        self.closed = True
        self._batches.clear()
        self._wake.set()

    async def items(self) -> AsyncIterator[bytes]:
        """One msgpack item per wake-up. The first one is empty: it says that the lane is open."""
        yield encode([])
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self.closed:
                return
            if self._batches:
                batches, self._batches = self._batches, []
                yield encode(batches)


Push = Callable[[bytes], Awaitable[object]]
"""Sends one item and gives its acknowledgement; the send itself never blocks."""


class FrameLane:
    """An engine's end of the lane to one parser: a push per step, `credit` pushes unacknowledged.

    Out of credit, steps merge into the next push. When a push fails the lane is lost: `on_lost`
    is called once with the error, and later steps are dropped by whoever owns the turns.
    """

    def __init__(
        self, push: Push, *, on_lost: Callable[[BaseException], None], credit: int = 64
    ) -> None:
        self._push = push
        self._on_lost = on_lost
        self._credit = credit
        self._unacked = 0
        self._since_ack = 0
        self._acks: deque[asyncio.Task[None]] = deque()
        self._step = Step([], [])
        self.lost = False

    def open(self, opening: Opening) -> None:
        self._step.opened.append(opening)

    def send(self, frames: list[Frame]) -> None:
        """Send this step's frames, with whatever waited for credit."""
        self._step.frames += frames
        if not self.lost and self._unacked < self._credit:
            self._flush()

    def _flush(self) -> None:
        step, self._step = self._step, Step([], [])
        try:
            ack = self._push(encode(step))
        except Exception as error:  # noqa: BLE001 - whatever the transport raises, the lane is lost
            self._lose(error)
            return
        self._unacked += 1
        self._since_ack += 1
        if self._since_ack >= ACK_EVERY or self._unacked >= self._credit:
            task = asyncio.ensure_future(self._acknowledge(ack, self._since_ack))
            self._since_ack = 0
            self._acks.append(task)

    async def _acknowledge(self, ack: Awaitable[object], count: int) -> None:
        try:
            await ack
        except Exception as error:  # noqa: BLE001 - whatever the transport raises, the lane is lost
            self._lose(error)
            return
        finally:
            self._acks.popleft()
        self._unacked -= count
        if self._step.frames and not self.lost:
            self._flush()

    def _lose(self, error: BaseException) -> None:
        if not self.lost:
            self.lost = True
            self._on_lost(error)
