"""The two ends of a hop, as Ray actors: an engine that makes tokens at its pace, and a consumer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from actors.lanes import FrameLane
from actors.messages import Step, decode_step, encode
from turns.frames import Frame

STEP = 0.02


def step(turns: int, number: int) -> list[Frame]:
    return [Frame(f"{turn:032d}", [number]) for turn in range(turns)]


class Consumer:
    """Takes tokens and counts them."""

    def __init__(self) -> None:
        self.tokens = 0

    async def frames(self, data: bytes) -> None:
        self.tokens += sum(len(frame.ids) for frame in decode_step(data).frames)

    async def read(self, engine: Any, method: str, *args: Any) -> None:
        stream = (
            getattr(engine, method).options(_generator_backpressure_num_objects=64).remote(*args)
        )
        async for ref in stream:
            await self.frames(await ref)

    async def read_each(self, engine: Any, turns: int, steps: int) -> None:
        await asyncio.gather(*(self.read(engine, "one", turn, steps) for turn in range(turns)))

    async def used(self) -> tuple[float, int]:
        return time.process_time(), self.tokens


class Engine:
    """Makes tokens at its pace."""

    async def paced(self, steps: int) -> AsyncIterator[int]:
        loop = asyncio.get_running_loop()
        due = loop.time()
        for number in range(steps):
            due += STEP
            await asyncio.sleep(max(0.0, due - loop.time()))
            yield number

    async def lane(self, turns: int, steps: int) -> AsyncIterator[bytes]:
        async for number in self.paced(steps):
            yield encoded(step(turns, number))

    async def one(self, turn: int, steps: int) -> AsyncIterator[bytes]:
        async for number in self.paced(steps):
            yield encoded([Frame(f"{turn:032d}", [number])])

    async def push(self, consumer: Any, turns: int, steps: int) -> None:
        lane = FrameLane(consumer.frames.remote, on_lost=lambda _: None)
        async for number in self.paced(steps):
            lane.send(step(turns, number))
        await consumer.used.remote()

    async def alone(self, turns: int, steps: int) -> int:
        consumer = Consumer()
        async for number in self.paced(steps):
            await consumer.frames(encoded(step(turns, number)))
        return consumer.tokens

    async def used(self) -> float:
        return time.process_time()


def encoded(frames: list[Frame]) -> bytes:
    return encode(Step([], frames))
