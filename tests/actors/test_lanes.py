"""Lanes: what is sent arrives once and in order, and memory is bounded by what is owed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.lanes import MOST_EARLY, FrameLane, LaneClosedError, Order, Outbox
from actors.messages import Opening, Step, decode_batches, decode_step
from turns.events import TextDelta
from turns.frames import EventBatch, Frame, ParseSpec


def batches(*texts: str) -> list[EventBatch]:
    return [EventBatch("t", [TextDelta(text)]) for text in texts]


async def test_outbox_says_that_it_is_open_and_merges_what_waits() -> None:
    outbox = Outbox()
    items = outbox.items()
    assert decode_batches(await anext(items)) == []
    outbox.add(batches("a"))
    outbox.add(batches("b"))
    assert decode_batches(await anext(items)) == batches("a", "b")


async def test_outbox_cuts_off_a_reader_that_takes_nothing() -> None:
    outbox = Outbox(bound=2)
    outbox.add(batches("a", "b", "c"))
    with pytest.raises(LaneClosedError):
        outbox.add(batches("d"))
    items = outbox.items()
    await anext(items)
    with pytest.raises(StopAsyncIteration):
        await anext(items)


class EventPushes:
    """A transport of events whose acknowledgements come when the test gives them."""

    def __init__(self) -> None:
        self.items: list[list[EventBatch]] = []
        self.acks: list[asyncio.Future[None]] = []
        self.broken = False
        self.hung_up = 0

    def hang_up(self) -> None:
        self.hung_up += 1

    def __call__(self, data: bytes) -> asyncio.Future[None]:
        if self.broken:
            raise OSError
        self.items.append(decode_batches(data))
        self.acks.append(asyncio.get_running_loop().create_future())
        return self.acks[-1]


async def test_outbox_pushes_what_waited_and_then_each_step_as_far_as_its_credit_goes() -> None:
    outbox, pushes = Outbox(credit=3), EventPushes()
    outbox.add(batches("a"))
    assert not outbox.read
    outbox.attach(pushes, pushes.hang_up)
    assert outbox.read
    for text in "bcde":
        outbox.add(batches(text))
    assert pushes.items == [batches("a"), batches("b"), batches("c")]
    pushes.acks[-1].set_result(None)
    await asyncio.sleep(0)
    assert pushes.items[3:] == [batches("d", "e")]


async def test_outbox_says_by_an_empty_push_that_it_is_open() -> None:
    outbox, pushes = Outbox(), EventPushes()
    outbox.attach(pushes, pushes.hang_up)
    assert pushes.items == [[]]


async def test_outbox_whose_pushes_fail_is_closed() -> None:
    outbox, pushes = Outbox(credit=1), EventPushes()
    outbox.attach(pushes, pushes.hang_up)
    outbox.add(batches("a"))
    pushes.acks[0].set_exception(OSError())
    await asyncio.sleep(0)
    assert outbox.closed
    assert pushes.hung_up == 1
    other, pushes = Outbox(), EventPushes()
    other.attach(pushes, pushes.hang_up)
    pushes.broken = True
    with pytest.raises(LaneClosedError):
        other.add(batches("a"))
    assert other.closed


async def test_outbox_hangs_up_on_a_reader_that_acknowledges_nothing() -> None:
    """It would otherwise wait for events that were thrown away."""
    outbox, pushes = Outbox(bound=2, credit=1), EventPushes()
    outbox.attach(pushes, pushes.hang_up)
    outbox.add(batches("a", "b", "c"))
    assert not pushes.hung_up
    with pytest.raises(LaneClosedError):
        outbox.add(batches("d"))
    assert pushes.hung_up == 1


class Pushes:
    """A transport whose acknowledgements come when the test gives them."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self.acks: list[asyncio.Future[None]] = []
        self.openings: list[str] = []

    def __call__(self, data: bytes) -> asyncio.Future[None]:
        step = decode_step(data)
        self.steps.append([i for frame in step.frames for i in frame.ids])
        self.openings += [opening.turn for opening in step.opened]
        ack: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.acks.append(ack)
        return ack


async def test_frames_wait_for_credit_and_then_go_in_order() -> None:
    pushes, lost = Pushes(), []
    lane = FrameLane(pushes, on_lost=lost.append, credit=2)
    lane.open(Opening("t", "i", ParseSpec("f", ""), 1))
    for i in range(5):
        lane.send([Frame("t", [i])])
    assert pushes.steps == [[0], [1]]
    for ack in pushes.acks:
        ack.set_result(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert pushes.steps == [[0], [1], [2, 3, 4]]
    assert (pushes.openings, lost) == (["t"], [])


async def test_failed_push_loses_the_lane_once() -> None:
    pushes, lost = Pushes(), []
    lane = FrameLane(pushes, on_lost=lost.append, credit=1)
    lane.send([Frame("t", [1])])
    pushes.acks[0].set_exception(RuntimeError("dead"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    lane.send([Frame("t", [2])])
    assert lane.lost
    assert [str(error) for error in lost] == ["dead"]
    assert pushes.steps == [[1]]


def test_frame_is_small_on_the_wire() -> None:
    frame = msgspec.msgpack.encode(Frame("0123456789abcdef0123456789abcdef", [151643]))
    assert len(frame) < 50


@given(arrivals=st.permutations([(lane, number) for lane in "ab" for number in range(8)]))
def test_steps_leave_in_the_order_in_which_they_were_sent(arrivals: list[tuple[str, int]]) -> None:
    order = Order()
    left = [s for lane, n in arrivals for s in order.take(Step([], [], lane, n))]
    for lane in "ab":
        assert [step.number for step in left if step.lane == lane] == list(range(8))


def test_step_that_never_comes_closes_the_lane() -> None:
    order = Order()
    for number in range(1, MOST_EARLY + 1):
        assert order.take(Step([], [], "a", number)) == []
    with pytest.raises(LaneClosedError):
        order.take(Step([], [], "a", MOST_EARLY + 1))


async def test_pushes_are_numbered_and_lanes_told_apart() -> None:
    sent = []

    def push(data: bytes) -> asyncio.Future[None]:
        sent.append(decode_step(data))
        return asyncio.get_running_loop().create_future()

    one, two = (FrameLane(push, on_lost=lambda _: None) for _ in range(2))
    for lane in (one, one, two):
        lane.send([Frame("t", [1])])
    assert [step.number for step in sent] == [0, 1, 0]
    assert sent[0].lane == sent[1].lane != sent[2].lane
