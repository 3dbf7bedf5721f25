"""The engine replica: one engine, its parser actors, and the leases of its turns.

A turn is one Serve call, `lease`, held open from its first to its last frame. It carries the job
in, so a turn costs one hop to begin; while it is open Serve counts it (capacity, autoscaling,
drain), and when its caller is gone Serve cancels it, which aborts the engine's work. Frames do not
come back through it: they leave on the lanes (docs/decisions/0002-lanes.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Protocol

import msgspec

from actors.engines.engine import Engine, EngineInfo, EngineStats
from actors.kv_telling import KvReporter, KvTelling
from actors.lane_pools import LanePool
from actors.lanes import FrameLane
from actors.messages import LeaseEnd, Opening, ReplicaCard, encode
from turns.errors import OverloadedError, TreadleError
from turns.frames import Frame, Job

log = logging.getLogger(__name__)
LOST = "what parsed this turn died in the middle of it; send the turn again"

decode_job = msgspec.msgpack.Decoder(Job).decode


class Reporter(KvReporter, Protocol):
    """Tells the router what this replica is, how loaded it is, and what its cache holds."""

    async def report(self, card: ReplicaCard, stats: EngineStats, told: int) -> bool:
        """`told` is the number of the last batch of KV events; False asks for a snapshot."""
        ...


class Lease:
    """One turn on this replica: who waits for its end, and the lane its frames leave on."""

    __slots__ = ("done", "lane")

    def __init__(self, done: asyncio.Future[LeaseEnd], lane: FrameLane) -> None:
        self.done = done
        self.lane = lane


class EngineReplica:
    """Plain class; `deployments` makes a Serve deployment of it."""

    def __init__(
        self,
        *,
        replica: str,
        model: str,
        engine: Engine,
        lanes: LanePool,
        reporter: Reporter,
        report_every: float = 1.0,
    ) -> None:
        self._replica = replica
        self._model = model
        self._engine = engine
        self._lanes = lanes
        self._reporter = reporter
        self._report_every = report_every
        self._leases: dict[str, Lease] = {}
        self._telling = KvTelling(reporter, model, replica)
        self._tasks: set[asyncio.Task[None]] = set()
        self._info: EngineInfo | None = None

    async def start(self) -> None:
        """Load the engine and bring up the parsers; both are needed before the first turn."""
        self._info, _ = await asyncio.gather(
            self._engine.start(on_frames=self._on_frames, on_kv=self._telling.take),
            self._lanes.start(self._on_lost),
        )
        self._spawn(self._report_forever())

    @property
    def card(self) -> ReplicaCard:
        info = self._info
        if info is None:
            msg = "the engine replica was asked for its card before it started"
            raise RuntimeError(msg)
        return ReplicaCard(
            replica=self._replica,
            model=self._model,
            block_size=info.block_size,
            max_model_len=info.max_model_len,
            max_turns=info.max_turns,
            parsers=list(self._lanes.names),
            reads_conversation=info.reads_conversation,
            sees_images=info.sees_images,
            kv_blocks=info.kv_blocks,
        )

    @property
    def open_turns(self) -> int:
        return len(self._leases)

    def stats(self) -> EngineStats:
        return self._engine.stats()

    async def check(self) -> None:
        await self._engine.check()

    async def stop(self) -> None:
        """End the engine, and then whatever is still being told of it."""
        self._lanes.stop()
        await self._engine.stop()
        await self._telling.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def lease(self, data: bytes, ingress: str, replica: str = "") -> bytes:
        """Run one turn; gives a LeaseEnd when its last frame has left, or why it never began.

        `replica` is for the request router alone: the replica the caller chose.
        """
        job = decode_job(data)
        lane = self._lanes.pick(ingress)
        if lane is None:
            return encode(LeaseEnd("unavailable", "this replica's parser is restarting; try again"))
        lease = Lease(asyncio.get_running_loop().create_future(), lane)
        self._leases[job.turn] = lease
        running = False
        try:
            self._engine.begin(job)
            running = True
            # No frame can overtake it: an engine makes none inside `begin`.
            lane.open(Opening(job.turn, ingress, job.spec, len(job.prompt)))
            end = await lease.done
            running = False
            return encode(end)
        except TreadleError as error:
            retry = error.retry_after if isinstance(error, OverloadedError) else 1
            return encode(LeaseEnd(error.kind, error.message, retry))
        finally:
            del self._leases[job.turn]
            if running:  # the caller is gone; asking `done` would not tell, it is cancelled too
                self._engine.abort(job.turn)
                lane.send([Frame(job.turn, [], finish="abort")])  # so that its parser forgets it

    def _on_frames(self, frames: list[Frame]) -> None:
        by_lane: dict[FrameLane, list[Frame]] = {}
        for frame in frames:
            lease = self._leases.get(frame.turn)
            if lease is None:  # cancelled: nobody reads it, and its parser was told
                continue
            by_lane.setdefault(lease.lane, []).append(frame)
            if frame.finish is not None:
                self._finish(lease, frame)
        for lane, share in by_lane.items():
            lane.send(share)

    def _finish(self, lease: Lease, frame: Frame) -> None:
        if not lease.done.done():
            failed = frame.finish == "error"
            lease.done.set_result(LeaseEnd("engine", frame.error) if failed else LeaseEnd())

    def _on_lost(self, lane: FrameLane, error: BaseException) -> None:
        log.warning("replica %s lost a lane: %s", self._replica, error)
        for turn, lease in list(self._leases.items()):
            if lease.lane is lane and not lease.done.done():
                self._engine.abort(turn)
                lease.done.set_result(LeaseEnd("engine", LOST))

    async def _report_forever(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # the router is away: the next report will do
                told = self._telling.acknowledged
                knows = await self._reporter.report(self.card, self._engine.stats(), told)
                if self._telling.owes or not knows:
                    self._telling.owe()
            await asyncio.sleep(self._report_every)

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("the router did not take a message: %s", type(error).__name__)
