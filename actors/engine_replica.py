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

from actors import legs
from actors.engines.engine import Engine, EngineInfo, EngineStats
from actors.kv_telling import KvReporter, KvTelling
from actors.lane_pools import LanePool
from actors.lanes import FrameLane
from actors.messages import LeaseEnd, Opening, ReplicaCard, encode
from turns.errors import EngineError, OverloadedError, TreadleError
from turns.frames import Frame, Job

log = logging.getLogger(__name__)
LOST = "what parsed this turn died in the middle of it"

decode_job = msgspec.msgpack.Decoder(Job).decode


class Reporter(KvReporter, Protocol):
    """Tells the router what this replica is, how loaded it is, and what its cache holds."""

    async def report(self, card: ReplicaCard, stats: EngineStats, told: int) -> bool:
        """`told` is the number of the last batch of KV events; False asks for a snapshot."""
        ...


class Lease:
    """One turn on this replica: who waits for its end, and the lane its frames leave on.

    `failed` is the frame by which its engine ended it in failure; it has not been sent yet.
    """

    __slots__ = ("done", "failed", "lane")

    def __init__(self, done: asyncio.Future[LeaseEnd], lane: FrameLane) -> None:
        self.done = done
        self.lane = lane
        self.failed: Frame | None = None


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
        self._looking: set[str] = set()  # turns whose pictures are being read
        self._telling = KvTelling(reporter, model, replica)
        self._tasks: set[asyncio.Task[None]] = set()
        self._info: EngineInfo | None = None
        self._sick = ""  # why no turn can run here now

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
        self._lose("this replica was stopped")
        self._lanes.stop()
        await self._engine.stop()
        await self._telling.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def lease(self, data: bytes, ingress: str, replica: str = "") -> bytes:
        """Run one turn; gives a LeaseEnd when its last frame has left, or why it never began.

        `replica` is the one that the caller chose. Where Serve has let that one go, the call comes
        to another, which does not begin the turn: its caller would ask the wrong one after it.
        """
        if replica not in ("", self._replica):
            return encode(LeaseEnd("unavailable", "the replica of this turn is gone", lost=True))
        job = decode_job(data)
        try:
            await self._look(job)
        except TreadleError as error:
            return encode(LeaseEnd(error.kind, error.message))
        lane = self._lanes.pick(ingress)
        if lane is None or self._sick:
            why = self._sick or "this replica's parser is restarting"
            return encode(LeaseEnd("unavailable", f"{why}; try again"))
        lease = Lease(asyncio.get_running_loop().create_future(), lane)
        self._leases[job.turn] = lease
        running = False
        try:
            finish = legs.over(job)
            if finish is None:
                self._engine.begin(job)
                running = True
            # No frame can overtake it: an engine makes none inside `begin`.
            read = len(job.prompt) - job.resumed
            lane.open(Opening(job.turn, ingress, job.spec, read, legs.said(job)))
            if finish is not None:
                self._on_frames([Frame(job.turn, [], finish=finish)])
            end = await lease.done
            running = False
            return encode(await self._failed(job.turn, lease, lease.failed, end))
        except TreadleError as error:
            retry = error.retry_after if isinstance(error, OverloadedError) else 1
            return encode(LeaseEnd(error.kind, error.message, retry))
        finally:
            del self._leases[job.turn]
            if running:  # the caller is gone; asking `done` would not tell, it is cancelled too
                self._engine.abort(job.turn)
                lane.leave(job.turn)

    def held(self, legs: list[str]) -> list[str]:
        """Which of these legs run here."""
        return [leg for leg in legs if leg in self._leases or leg in self._looking]

    async def _look(self, job: Job) -> None:
        if not job.pictures:
            return
        self._looking.add(job.turn)
        try:
            await self._engine.look(job)
        finally:
            self._looking.discard(job.turn)

    async def _failed(
        self, turn: str, lease: Lease, frame: Frame | None, end: LeaseEnd
    ) -> LeaseEnd:
        """A turn that its engine ended in failure has failed, unless the engine itself is dead."""
        if frame is None:
            return end
        if await self._well():
            lease.lane.send([frame])
            return end
        lease.lane.leave(turn)
        return LeaseEnd("engine", frame.error, lost=True)

    async def _well(self) -> bool:
        try:
            await self._engine.check()
        except EngineError as error:
            self._sick = error.message
        else:
            self._sick = ""
        return not self._sick

    def _lose(self, why: str, lane: FrameLane | None = None) -> None:
        """Give all turns up, or those of one lane; they may go on elsewhere."""
        for turn, lease in list(self._leases.items()):
            if not lease.done.done() and lane in (None, lease.lane):
                lease.done.set_result(LeaseEnd("engine", why, lost=True))
                self._engine.abort(turn)
                lease.lane.leave(turn)

    def _on_frames(self, frames: list[Frame]) -> None:
        by_lane: dict[FrameLane, list[Frame]] = {}
        for frame in frames:
            lease = self._leases.get(frame.turn)
            if lease is None or lease.done.done():  # nobody reads it, and its parser was told
                continue
            if frame.finish == "error":
                lease.failed = frame
                lease.done.set_result(LeaseEnd("engine", frame.error))
                continue
            by_lane.setdefault(lease.lane, []).append(frame)
            if frame.finish is not None:
                lease.done.set_result(LeaseEnd())
        for lane, share in by_lane.items():
            lane.send(share)

    def _on_lost(self, lane: FrameLane, error: BaseException) -> None:
        log.warning("replica %s lost a lane: %s", self._replica, error)
        self._lose(LOST, lane)

    async def _report_forever(self) -> None:
        """Tell the router of this replica, as long as it can run a turn."""
        while True:
            if await self._well():
                with contextlib.suppress(Exception):  # the router is away: the next report will do
                    told = self._telling.acknowledged
                    knows = await self._reporter.report(self.card, self._engine.stats(), told)
                    if self._telling.owes or not knows:
                        self._telling.owe()
            else:
                self._lose(self._sick)
            await asyncio.sleep(self._report_every)

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("the router did not take a message: %s", type(error).__name__)
