"""The feed against a publisher that behaves as vLLM's, down to the frames of its replay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from actors.engines.engine import KvCleared, KvEvent, KvRemoved

zmq = pytest.importorskip("zmq", reason="pyzmq comes with vLLM")
zmq_asyncio = pytest.importorskip("zmq.asyncio")

WAIT_S = 30


def batch(number: int) -> bytes:
    return msgspec.msgpack.encode([0.0, [["BlockRemoved", [number]]], 0])


class Publisher:
    """`kept` are the batches that can still be replayed."""

    def __init__(self, events: str, replay: str) -> None:
        self._context = zmq_asyncio.Context()
        self._events = self._context.socket(zmq.PUB)
        self._replay = self._context.socket(zmq.ROUTER)
        self._events.bind(events)
        self._replay.bind(replay)
        self.kept: list[int] = []
        self._task = asyncio.create_task(self._serve())

    async def publish(self, number: int) -> None:
        await self._events.send_multipart([b"", number.to_bytes(8, "big"), batch(number)])

    async def _serve(self) -> None:
        while True:
            who, _, start = await self._replay.recv_multipart()
            for number in self.kept:
                if number >= int.from_bytes(start, "big"):
                    frames = [who, b"", b"", number.to_bytes(8, "big"), batch(number)]
                    await self._replay.send_multipart(frames)
            end = (-1).to_bytes(8, "big", signed=True)
            await self._replay.send_multipart([who, b"", b"", end, b""])

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._context.destroy(linger=0)


class Heard:
    def __init__(self) -> None:
        self.events: list[KvEvent] = []
        self._news = asyncio.Event()

    def __call__(self, events: Sequence[KvEvent]) -> None:
        self.events.extend(events)
        self._news.set()

    async def until(self, last: KvEvent) -> list[KvEvent]:
        async with asyncio.timeout(WAIT_S):
            while last not in self.events:
                self._news.clear()
                await self._news.wait()
        return self.events


@asynccontextmanager
async def feed() -> AsyncIterator[tuple[Publisher, Heard]]:
    from actors.engines.vllm.kv_feed import KvFeed  # noqa: PLC0415 needs pyzmq

    reader, heard = KvFeed(), Heard()
    publisher = Publisher(reader.endpoints.events, reader.endpoints.replay)
    reader.start(heard)
    try:
        yield publisher, heard
    finally:
        await reader.close()
        await publisher.close()


async def arrive(publisher: Publisher, number: int, heard: Heard) -> list[KvEvent]:
    """Publish until it is heard: a subscription takes a moment to reach the publisher."""
    asked = KvRemoved([number])
    async with asyncio.timeout(WAIT_S):
        while asked not in heard.events:
            await publisher.publish(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await heard.until(asked)
    return heard.events


async def test_batches_come_once_and_in_order() -> None:
    async with feed() as (publisher, heard):
        await arrive(publisher, 0, heard)
        for number in (1, 2, 1, 3):
            await publisher.publish(number)
        assert await heard.until(KvRemoved([3])) == [KvRemoved([n]) for n in range(4)]


async def test_a_late_subscriber_gets_what_it_missed() -> None:
    async with feed() as (publisher, heard):
        publisher.kept = [0, 1, 2]
        assert await arrive(publisher, 2, heard) == [KvRemoved([n]) for n in range(3)]


async def test_a_gap_is_filled_by_replay() -> None:
    async with feed() as (publisher, heard):
        await arrive(publisher, 0, heard)
        publisher.kept = [1, 2, 3, 4]
        await publisher.publish(4)
        assert await heard.until(KvRemoved([4])) == [KvRemoved([n]) for n in range(5)]


async def test_what_cannot_be_replayed_clears_the_index_first() -> None:
    async with feed() as (publisher, heard):
        await arrive(publisher, 0, heard)
        publisher.kept = [3, 4]
        await publisher.publish(5)
        assert await heard.until(KvRemoved([5])) == [
            KvRemoved([0]),
            KvCleared(),
            *(KvRemoved([n]) for n in (3, 4, 5)),
        ]
