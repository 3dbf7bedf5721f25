"""Near lanes: items arrive whole and in order, are acknowledged, and a lane's end is told once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.lanes import FrameLane
from actors.messages import decode_step
from actors.near_lanes import ACK_EVERY, HEAD, LaneBrokenError, Receiving, Sending, connect, listen
from turns.frames import Frame

WITHIN = 10.0


class Ends:
    """Both ends of one lane, and what they were told."""

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.lost: list[BaseException] = []
        self.gone = asyncio.Event()
        self.bad = b"\0"
        self.sending = Sending(self._lost)
        self.receiving = Receiving(self._take, self._lost)

    def _take(self, item: bytes) -> None:
        if item == self.bad:
            raise ValueError("a bad item")
        self.items.append(item)

    def _lost(self, error: BaseException) -> None:
        self.lost.append(error)
        if len(self.lost) == 2:
            self.gone.set()


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    """An open lane, closed on both ends when the test is over."""
    ends = Ends()
    path = await listen(ends.receiving)
    assert await connect(path, ends.sending)
    yield ends
    ends.sending.close()
    async with asyncio.timeout(WITHIN):
        await ends.gone.wait()


async def test_items_of_any_size_arrive_in_order_and_are_acknowledged(ends: Ends) -> None:
    sent = [b"x" * size for size in (0, 1, 5_000_000, 3, 70_000)] * ACK_EVERY
    acknowledged = [ends.sending.push(item) for item in sent]
    async with asyncio.timeout(WITHIN):
        await acknowledged[-1]
    assert ends.items == sent


async def test_the_path_is_gone_once_the_other_end_has_connected() -> None:
    ends = Ends()
    path = await listen(ends.receiving)
    assert Path(path).parent.stat().st_mode & 0o077 == 0
    assert await connect(path, ends.sending)
    acknowledged = [ends.sending.push(b"a") for _ in range(ACK_EVERY)][-1]
    async with asyncio.timeout(WITHIN):
        await acknowledged
    assert not Path(path).parent.exists()
    assert not await connect(path, Ends().sending)
    ends.sending.close()
    async with asyncio.timeout(WITHIN):
        await ends.gone.wait()


async def test_an_end_that_closes_is_told_to_both_and_to_who_waits(ends: Ends) -> None:
    waiting = ends.sending.push(b"a")
    ends.receiving.close()
    async with asyncio.timeout(WITHIN):
        await ends.gone.wait()
    assert waiting.done()
    assert waiting.exception() is not None
    with pytest.raises(LaneBrokenError):
        ends.sending.push(b"b")


async def test_an_item_that_cannot_be_taken_ends_the_lane(ends: Ends) -> None:
    ends.sending.push(b"a")
    ends.sending.push(ends.bad)
    ends.sending.push(b"c")
    async with asyncio.timeout(WITHIN):
        await ends.gone.wait()
    assert ends.items == [b"a"]
    assert [type(error) for error in ends.lost].count(ValueError) == 1


async def test_nobody_listens() -> None:
    assert not await connect("", Ends().sending)
    assert not await connect("/nowhere/at/all", Ends().sending)


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_any_cut_of_the_bytes_gives_the_same_items(items: list[bytes], data: st.DataObject) -> None:
    seen: list[bytes] = []
    receiving = Receiving(seen.append, lambda _: None)
    raw = b"".join(len(item).to_bytes(HEAD, "little") + item for item in items)
    while raw:
        cut = data.draw(st.integers(1, len(raw)))
        receiving.data_received(raw[:cut])
        raw = raw[cut:]
    assert seen == items


async def test_a_frame_lane_over_a_socket_merges_what_has_no_credit(ends: Ends) -> None:
    """Nothing is lost when the reader is slow: steps wait, and go on with the acknowledgements."""
    lane = FrameLane(ends.sending.push, on_lost=lambda _: None, credit=ACK_EVERY)
    count = 5 * ACK_EVERY
    for number in range(count):
        lane.send([Frame("t", [number])])

    def ids() -> list[int]:
        return [i for item in ends.items for f in decode_step(item).frames for i in f.ids]

    async with asyncio.timeout(WITHIN):
        while len(ids()) < count:  # noqa: ASYNC110 - bounded, and there is no one event to wait for
            await asyncio.sleep(0.001)
    assert ids() == list(range(count))
    assert len(ends.items) < count


def test_the_loop_of_the_cluster_runs_it_as_well() -> None:
    """Ray and Serve run uvloop where it is installed; its transports are not asyncio's."""
    uvloop = pytest.importorskip("uvloop")

    async def there() -> list[bytes]:
        ends = Ends()
        assert await connect(await listen(ends.receiving), ends.sending)
        acknowledged = [ends.sending.push(b"a") for _ in range(ACK_EVERY)][-1]
        async with asyncio.timeout(WITHIN):
            await acknowledged
            ends.sending.close()
            await ends.gone.wait()
        return ends.items

    assert uvloop.run(there()) == [b"a"] * ACK_EVERY
