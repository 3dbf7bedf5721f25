"""What the tests of turns in the air fly them with: a sink that is a watch too, and leases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from actors.conductor import Conductor
from actors.flights import Flight
from turns.events import Event
from turns.frames import EventBatch, Job, ParseSpec
from turns.turn import Sampling


class Recorder:
    """A sink and a watch."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.cached: list[int] = []
        self.landings = 0
        self.given_up = 0
        self.asked: list[tuple[list[int], str]] = []
        self.places: list[list[str] | Exception] = []

    def take(self, events: list[Event]) -> None:
        self.events += events

    def began(self, cached: int) -> None:
        self.cached.append(cached)

    def generated(self, ids: Sequence[int]) -> None:
        self.output = list(ids)

    def landed(self, generated: int) -> None:
        self.landings += 1

    def leave(self) -> None:
        self.given_up += 1

    async def again(self, said: Sequence[int], lost: str) -> Sequence[str]:
        self.asked.append((list(said), lost))
        if self.places:
            found = self.places.pop(0)
            if isinstance(found, Exception):
                raise found
            return found
        return ["r2"]


class Call:
    """Leases that end when the test says so; `lease` is the last one."""

    def __init__(self) -> None:
        self.replicas: list[str] = []
        self.jobs: list[Job] = []
        self.leases: list[asyncio.Future[bytes]] = []
        self.holds: asyncio.Future[list[str]] | None = None

    def held(self, legs: list[str], replica: str) -> asyncio.Future[list[str]]:
        assert self.holds is not None
        return self.holds

    def __call__(self, job: bytes, replica: str) -> asyncio.Future[bytes]:
        self.replicas.append(replica)
        self.jobs.append(msgspec.msgpack.decode(job, type=Job))
        self.lease: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.leases.append(self.lease)
        return self.lease


def begin(conductor: Conductor, turn: str = "t") -> tuple[Flight, Recorder, Call]:
    recorder, call = Recorder(), Call()
    job = Job(turn, [1, 2, 3], Sampling(max_tokens=9), ParseSpec("qwen3", ""))
    return conductor.begin(job, call, ["r1", "r2"], recorder, recorder), recorder, call


async def settle() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def wait_until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)


def batch(*events: Event, turn: str = "t", ids: Sequence[int] = ()) -> list[EventBatch]:
    return [EventBatch(turn, list(events), list(ids))]
