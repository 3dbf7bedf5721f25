"""Lanes: one long-lived stream between two actors that carries many turns.

A lane merges what its consumer has not yet taken into one item, so a slow consumer costs memory in
proportion to what it is owed, never one item per token; a consumer that takes nothing at all is
cut off at `bound` batches. Ray runs the calls on an asyncio actor in any order, so pushes are
numbered and put back in order. Measured choices: docs/decisions/0002-lanes.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import uuid
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from actors.messages import Opening, Step, encode
from turns.frames import EventBatch, Frame

ACK_EVERY = 16
"""Pushes between two awaited acknowledgements. Calls of one caller run nearly in order on the
callee, so one ack stands for the pushes before it, and awaiting each would cost a task per step."""

MOST_LANES = 4096
MOST_EARLY = 256


Push = Callable[[bytes], Awaitable[object]]
"""Sends one item and gives its acknowledgement; the send itself never blocks."""


class LaneClosedError(Exception):
    """The other end of the lane is gone, or took nothing for too long."""


class Outbox:
    """A parser's end of the lane to one ingress: events wait here until they are taken, by a stream
    (`items`) or by pushes (`attach`), of which `credit` may be unacknowledged. `read` says that it
    has had a reader.
    """

    def __init__(self, *, bound: int = 100_000, credit: int = 64) -> None:
        self._batches: list[EventBatch] = []
        self._wake = asyncio.Event()
        self._bound = bound
        self._credit = credit
        self._pushed = 0  # since the last acknowledgement that is waited for
        self._unacked = 0
        self._push: Push | None = None
        self._hang_up: Callable[[], None] = lambda: None
        self.read = False
        self.closed = False

    def add(self, batches: list[EventBatch]) -> None:
        """Hand over the events of one step; the next item has them."""
        if len(self._batches) > self._bound:
            self.close()
        if self.closed:
            raise LaneClosedError
        self._batches += batches
        if self._push is None:
            self._wake.set()
        else:
            self._flush(self._push)

    def attach(self, push: Push, hang_up: Callable[[], None]) -> None:
        """Send what waits, and all that comes, by pushes. The first item may be empty: it says that
        the lane is open. `hang_up` tells the reader that it is closed.
        """
        self.read = True
        self._push, self._hang_up = push, hang_up
        self._send(push)

    def close(self) -> None:
        self.closed = True
        self._batches.clear()
        self._wake.set()
        self._hang_up()

    async def items(self) -> AsyncIterator[bytes]:
        """One msgpack item per wake-up. The first one is empty: it says that the lane is open."""
        self.read = True
        yield encode([])
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self.closed:
                return
            if self._batches:
                batches, self._batches = self._batches, []
                yield encode(batches)

    def _flush(self, push: Push) -> None:
        if self._batches and self._unacked < self._credit and not self.closed:
            self._send(push)

    def _send(self, push: Push) -> None:
        batches, self._batches = self._batches, []
        try:
            ack = push(encode(batches))
        except Exception as error:
            self.close()
            raise LaneClosedError from error
        self._unacked += 1
        self._pushed += 1
        if self._pushed >= ACK_EVERY or self._unacked >= self._credit:
            count, self._pushed = self._pushed, 0
            asyncio.ensure_future(ack).add_done_callback(partial(self._acked, push, count))

    def _acked(self, push: Push, count: int, ack: asyncio.Future[object]) -> None:
        if ack.cancelled() or ack.exception() is not None:
            self.close()
            return
        self._unacked -= count
        with contextlib.suppress(LaneClosedError):  # the next to add something hears of it
            self._flush(push)


class Order:
    """Puts the steps of lanes back into the order in which they were sent.

    What is early waits for what is late. The `MOST_LANES` lanes used last are remembered.
    """

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, tuple[int, dict[int, Step]]] = OrderedDict()

    def take(self, step: Step) -> list[Step]:
        """The steps that are due now that this one is here; raises LaneClosedError on a hole."""
        due, early = self._lanes.get(step.lane) or (0, {})
        if step.number != due:
            early[step.number] = step
            if len(early) > MOST_EARLY:
                raise LaneClosedError(f"step {due} of a lane never came")
            self._keep(step.lane, due, early)
            return []
        steps = [step]
        while (following := early.pop(due + len(steps), None)) is not None:
            steps.append(following)
        self._keep(step.lane, due + len(steps), early)
        return steps

    def _keep(self, lane: str, due: int, early: dict[int, Step]) -> None:
        self._lanes[lane] = (due, early)
        self._lanes.move_to_end(lane)
        if len(self._lanes) > MOST_LANES:
            self._lanes.popitem(last=False)


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
        self._name = uuid.uuid4().hex[:12]  # a lane opened again starts its count again
        self._number = itertools.count()
        self._step = Step([], [])
        self.lost = False
        self.gone = asyncio.Event()

    def open(self, opening: Opening) -> None:
        self._step.opened.append(opening)

    def leave(self, turn: str) -> None:
        """Have the parser forget a turn, without a word to who read it."""
        self._step.left.append(turn)
        self.send([])

    def send(self, frames: list[Frame]) -> None:
        """Send this step's frames, with whatever waited for credit."""
        self._step.frames += frames
        if not self.lost and self._unacked < self._credit:
            self._flush()

    def _flush(self) -> None:
        step, self._step = self._step, Step([], [])
        step.lane, step.number = self._name, next(self._number)
        try:
            ack = self._push(encode(step))
        except Exception as error:  # noqa: BLE001 - whatever the transport raises, the lane is lost
            self.lose(error)
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
            self.lose(error)
            return
        finally:
            self._acks.popleft()
        self._unacked -= count
        if (self._step.frames or self._step.left) and not self.lost:
            self._flush()

    def lose(self, error: BaseException) -> None:
        """The other end is dead. Twice is no error."""
        if not self.lost:
            self.lost = True
            self.gone.set()
            self._on_lost(error)
