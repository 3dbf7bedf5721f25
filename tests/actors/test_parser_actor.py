"""The parser actor without Ray: both of its lanes over sockets, and what the end of one means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import ray

from actors.lanes import FrameLane
from actors.messages import Opening, decode_batches
from actors.near_lanes import Receiving, Sending, connect
from actors.parser_actor import ParserActor
from tests.actors.test_parsing import Ending
from tests.serving.waits import until
from turns.events import TextDelta, TurnStarted
from turns.frames import EventBatch, Frame, ParseSpec

WITHIN = 10.0
HERE = "this node"


class Folder:
    """A model folder of a toy."""

    def parser_parts(self) -> Any:
        return Ending, lambda _: Ending()


class Context:
    def get_node_id(self) -> str:
        return HERE


class Reader:
    """An ingress's end of a lane."""

    def __init__(self) -> None:
        self.batches: list[EventBatch] = []
        self.items = 0
        self.came = asyncio.Event()
        self.lost = asyncio.Event()
        self.end = Receiving(self._take, lambda _: self.lost.set())

    def _take(self, item: bytes) -> None:
        self.items += 1
        self.batches += decode_batches(item)
        self.came.set()

    async def have(self, count: int) -> list[EventBatch]:
        async with asyncio.timeout(WITHIN):
            while len(self.batches) < count:
                self.came.clear()
                await self.came.wait()
        return self.batches

    async def over(self) -> None:
        async with asyncio.timeout(WITHIN):
            await self.lost.wait()


Opened = Callable[[str], Awaitable[Reader]]


@pytest.fixture
def actor(monkeypatch: pytest.MonkeyPatch) -> ParserActor:
    monkeypatch.setattr(ray, "get_runtime_context", Context)
    return ParserActor(Folder())  # type: ignore[arg-type]


@pytest.fixture
async def lane(actor: ParserActor) -> AsyncIterator[FrameLane]:
    """The engine's lane to the actor."""
    lost = asyncio.Event()
    end = Sending(lambda _: lost.set())
    assert await connect(await actor.frames_near(), end)
    yield FrameLane(end.push, on_lost=lambda _: None)
    end.close()
    async with asyncio.timeout(WITHIN):
        await lost.wait()


@pytest.fixture
async def opened(actor: ParserActor) -> AsyncIterator[Opened]:
    """Opens a reader's lane to the actor; all are closed when the test is over."""
    readers = []

    async def opening(ingress: str) -> Reader:
        reader = Reader()
        assert await connect(await actor.events_near(ingress, HERE), reader.end)
        readers.append(reader)
        async with asyncio.timeout(WITHIN):
            await reader.came.wait()
        return reader

    yield opening
    for reader in readers:
        reader.end.close()
        await reader.over()


def open_turn(lane: FrameLane, turn: str, ingress: str) -> None:
    lane.open(Opening(turn, ingress, ParseSpec("f", ""), 3))


async def test_frames_become_events_on_the_lane_of_who_owns_the_turn(
    lane: FrameLane, opened: Opened
) -> None:
    one, other = await opened("one"), await opened("other")
    open_turn(lane, "a", "one")
    open_turn(lane, "b", "other")
    for number in range(1, 6):
        lane.send([Frame("a", [number], 0), Frame("b", [20 + number], 0)])
    seen = await one.have(5)
    assert [batch.turn for batch in seen] == ["a"] * 5
    assert seen[0].events == [TurnStarted(3), TextDelta("1")]
    assert [batch.ids for batch in seen] == [[1], [2], [3], [4], [5]]
    assert [batch.ids for batch in await other.have(5)] == [[21], [22], [23], [24], [25]]


async def test_what_comes_before_the_reader_waits_for_it(lane: FrameLane, opened: Opened) -> None:
    first = await opened("first")
    open_turn(lane, "a", "late")
    open_turn(lane, "b", "first")
    lane.send([Frame("a", [1], 0), Frame("b", [1], 0)])
    await first.have(1)  # the step has been parsed
    late = await opened("late")
    assert (await late.have(1))[0].ids == [1]
    assert late.items == 1


async def test_an_ingress_that_is_gone_takes_its_turns_with_it_and_no_others(
    actor: ParserActor, lane: FrameLane, opened: Opened
) -> None:
    gone, stays = await opened("gone"), await opened("stays")
    open_turn(lane, "a", "gone")
    open_turn(lane, "b", "stays")
    lane.send([Frame("a", [1], 0), Frame("b", [1], 0)])
    await gone.have(1)
    gone.end.close()
    await until(lambda: len(actor._parsing) == 1)
    lane.send([Frame("a", [2], 0), Frame("b", [2], 0)])
    assert (await stays.have(2))[1].ids == [2]


async def test_a_second_reader_of_a_name_ends_the_first(
    actor: ParserActor, lane: FrameLane, opened: Opened
) -> None:
    first = await opened("one")
    open_turn(lane, "a", "one")
    lane.send([Frame("a", [1], 0)])
    await first.have(1)
    second = await opened("one")
    assert await actor.ready() == 0, "who lost its lane has its turns go on elsewhere"
    open_turn(lane, "b", "one")
    lane.send([Frame("b", [2], 0)])
    assert (await second.have(1))[0].turn == "b"
    assert len(first.batches) == 1
    await first.over()
    lane.send([Frame("b", [3], 0)])
    assert (await second.have(2))[1].ids == [3]


async def test_an_ingress_of_another_node_is_given_no_path(actor: ParserActor) -> None:
    assert await actor.events_near("one", "another node") == ""
