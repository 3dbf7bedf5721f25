"""Lane pools: where an engine replica's frames go. One class per value of the setting `parser`.

`actor`: to parser actors beside the replica, created and owned by it, so that they die with it.
`inline`: straight to the ingress of each turn, which parses itself; one process and one hop less,
for small machines and as the reference of what the parser actor costs.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.inline import take_frames
from actors.lanes import FrameLane, LaneClosedError, Push
from actors.near_lanes import Sending, connect
from actors.parser_actor import ParserActor
from actors.serving import ModelFolder, ModelSpec

log = logging.getLogger(__name__)

OnLost = Callable[[FrameLane, BaseException], None]
NAMESPACE = "treadle"
SERVE_NAMESPACE = "serve"
READY_WITHIN = 60.0
"""Seconds a parser actor has to come up."""

REOPEN_FIRST = 0.1
REOPEN_LONGEST = 5.0
"""Seconds between two attempts to start a parser in place of a dead one."""


class LanePool(Protocol):
    """The lanes of one engine replica."""

    names: list[str]
    """The parser actors an ingress must read from; empty when it parses itself."""

    async def start(self, on_lost: OnLost) -> None: ...

    def pick(self, ingress: str) -> FrameLane | None:
        """The lane for a turn of that ingress; None while there is none to be had."""
        ...

    def stop(self) -> None: ...


class ActorLanes:
    """One lane to each parser actor; a dead one is replaced under its own name."""

    def __init__(self, spec: ModelSpec, replica: str, count: int) -> None:
        self._spec = spec
        self._lanes: list[FrameLane | None] = [None] * count
        self._actors: list[Any] = [None] * count
        self._turn = itertools.count()
        self._minds: list[asyncio.Task[None]] = []
        self._on_lost: OnLost = lambda _lane, _error: None
        self.names = [f"parser-{replica}-{index}" for index in range(count)]

    async def start(self, on_lost: OnLost) -> None:
        self._on_lost = on_lost
        await asyncio.gather(*(self._open(index) for index in range(len(self._lanes))))
        self._minds = [asyncio.ensure_future(self._mind(i)) for i in range(len(self._lanes))]

    def pick(self, ingress: str) -> FrameLane | None:
        for _ in self._lanes:
            lane = self._lanes[next(self._turn) % len(self._lanes)]
            if lane is not None and not lane.lost:
                return lane
        return None

    def stop(self) -> None:
        for mind in self._minds:
            mind.cancel()

    async def _open(self, index: int) -> None:
        here = ray.get_runtime_context().get_node_id()
        actor: Any = (
            ray.remote(ParserActor)
            .options(
                name=self.names[index],
                namespace=NAMESPACE,
                num_cpus=0,
                max_concurrency=1000,
                scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False),
            )
            .remote(ModelFolder(self._spec))
        )
        async with asyncio.timeout(READY_WITHIN):
            await actor.ready.remote()
        self._actors[index] = actor
        self._lanes[index] = await self._lane(actor)

    async def _lane(self, actor: Any) -> FrameLane:
        """By a socket, as both are on one node; by calls where they do not see the same files."""

        def lost(error: BaseException) -> None:
            lane.lose(error)

        near = Sending(lost)
        push: Push = near.push
        if not await connect(await actor.frames_near.remote(), near):
            push = actor.frames.remote
        lane = FrameLane(push, on_lost=lambda error: self._on_lost(lane, error))
        return lane

    async def _mind(self, index: int) -> None:
        """Hold a call open that ends only with the actor: its end is the news of its death. An
        actor whose lane broke is as good as dead.
        """
        while True:
            lane = self._lanes[index]
            held = asyncio.ensure_future(self._held(self._actors[index]))
            gone: list[asyncio.Future[Any]] = [held]
            if lane is not None:
                gone.append(asyncio.ensure_future(lane.gone.wait()))
            try:
                await asyncio.wait(gone, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in gone:
                    one.cancel()
            log.warning("parser %s died; starting another", self.names[index])
            if lane is not None:
                lane.lose(LaneClosedError("its parser died"))
            await self._open_again(index)

    async def _held(self, actor: Any) -> None:
        with contextlib.suppress(ray.exceptions.RayError):
            await actor.hold.remote()

    async def _open_again(self, index: int) -> None:
        """Start another parser under the name of the dead one, and try until one runs."""
        pause = REOPEN_FIRST
        while True:
            try:
                ray.kill(self._actors[index])  # a dead actor keeps its name until it is told to die
                await self._open(index)
            except Exception as error:  # noqa: BLE001 - whatever it is, without a parser nothing runs
                log.warning("parser %s did not start: %r", self.names[index], error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, REOPEN_LONGEST)
            else:
                return


class InlineLanes:
    """One lane to each ingress, opened when its first turn comes."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._lanes: dict[str, FrameLane] = {}
        self._on_lost: OnLost = lambda _lane, _error: None
        self.names: list[str] = []

    async def start(self, on_lost: OnLost) -> None:
        self._on_lost = on_lost

    def pick(self, ingress: str) -> FrameLane | None:
        lane = self._lanes.get(ingress)
        if lane is None or lane.lost:
            lane = self._lanes[ingress] = self._open(ingress)
        return lane

    def stop(self) -> None:
        self._lanes.clear()

    def _open(self, ingress: str) -> FrameLane:
        actor = ray.get_actor(ingress, namespace=SERVE_NAMESPACE)

        def push(data: bytes) -> Awaitable[object]:
            return actor.__ray_call__.remote(take_frames, data, self._model)

        lane = FrameLane(push, on_lost=lambda error: self._lost(ingress, lane, error))
        return lane

    def _lost(self, ingress: str, lane: FrameLane, error: BaseException) -> None:
        if self._lanes.get(ingress) is lane:
            del self._lanes[ingress]
        self._on_lost(lane, error)
