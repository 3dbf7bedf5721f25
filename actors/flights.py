"""Flights: what the conductor knows of a turn in the air, and whom it tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal, Protocol

from turns.events import Event, TurnStarted
from turns.frames import Job

Why = Literal["lost", "silent", "parked", "slow"]
"""Why a turn left its place: what ran it died; it gave no sign of life; it made room for another;
its client reads more slowly than it speaks."""


class Sink(Protocol):
    """Takes the events of one turn, a step at a time. Must not block and must not raise."""

    def take(self, events: list[Event]) -> None: ...


class Watch(Protocol):
    """Hears of a turn's turning points, and finds it another place."""

    def began(self, cached: int) -> None:
        """The first events of a leg are here; `cached` prompt tokens came from the cache."""
        ...

    def leave(self) -> None:
        """Give up its place, if it has one."""
        ...

    async def again(self, said: Sequence[int], lost: str) -> Sequence[str]:
        """The replicas that may run it behind what it said, the best one first; where it was is
        given up. `lost` is the replica that lost it, or "". Raises OverloadedError while none can.
        """
        ...

    def generated(self, ids: Sequence[int]) -> None:
        """All tokens that it generated; it has come to its end and lands now."""
        ...

    def landed(self, generated: int) -> None:
        """It is over, however it ended. Called exactly once."""
        ...


class Unwatched:
    """Watches nothing: the turns that a carried turn is made of have watches of their own."""

    def began(self, cached: int) -> None: ...
    def generated(self, ids: Sequence[int]) -> None: ...
    def landed(self, generated: int) -> None: ...
    def leave(self) -> None: ...

    async def again(self, said: Sequence[int], lost: str) -> Sequence[str]:
        """It has no place of its own."""
        return ()


class LeaseCall(Protocol):
    """Opens a turn on a replica; awaiting gives its LeaseEnd, cancelling aborts the turn."""

    def __call__(self, job: bytes, replica: str) -> asyncio.Future[bytes]: ...

    def held(self, legs: list[str], replica: str) -> asyncio.Future[list[str]]:
        """Which of these legs that replica still runs."""
        ...


class _NoCall:
    """The call of a turn that has no lease of its own."""

    def __call__(self, job: bytes, replica: str) -> asyncio.Future[bytes]:
        raise NotImplementedError

    def held(self, legs: list[str], replica: str) -> asyncio.Future[list[str]]:
        raise NotImplementedError


NO_CALL = _NoCall()


class Flight:
    """One turn in the air.

    `leg` is the name under which it runs now, "" while it runs nowhere; `ids` are the tokens whose
    events were handed on; `heard` is the loop's time of its last sign of life. `left` is why its
    last leg was ended from here, `losses` how many legs ended against everybody's will. It has
    looked for another place `since` the loop's time (0: it does not), for `patience` seconds at
    most. `clear` is not set while its client must read first. `inner` is the turn in the air that a
    carried one is made of now.
    """

    __slots__ = (
        "call",
        "clear",
        "heard",
        "ids",
        "inner",
        "job",
        "landed",
        "lane",
        "left",
        "leg",
        "legs",
        "losses",
        "patience",
        "replica",
        "retry_after",
        "since",
        "sink",
        "started",
        "task",
        "watch",
    )

    def __init__(self, job: Job, call: LeaseCall, sink: Sink, watch: Watch) -> None:
        self.job = job
        self.call = call
        self.sink = sink
        self.watch = watch
        self.landed = asyncio.Event()
        self.clear = asyncio.Event()
        self.clear.set()
        self.heard = asyncio.get_running_loop().time()
        self.ids: list[int] = []
        self.started: TurnStarted | None = None
        self.left: Why | None = None
        self.since = 0.0
        self.patience = 0.0
        self.legs = 0
        self.losses = 0
        self.leg = ""
        self.lane = ""
        self.replica = ""
        self.retry_after = 1
        self.task: asyncio.Task[None] | None = None
        self.inner: Flight | None = None

    @property
    def turn(self) -> str:
        return self.job.turn
