"""The engine replica's laws: a lease that is left aborts its turn, and its parser is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from actors.engine_replica import EngineReplica
from actors.engines.engine import EngineInfo, EngineStats, KvEvent
from actors.lanes import FrameLane
from actors.messages import LeaseEnd, Opening, ReplicaCard, decode_lease_end, decode_step
from turns.errors import EngineError, InvalidRequestError, TreadleError
from turns.frames import Frame, Job, ParseSpec, Picture
from turns.turn import Sampling


class Engine:
    """An engine whose steps the test makes."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.aborted: list[str] = []
        self.dead = ""
        self.sight = asyncio.Event()
        self.refuses: TreadleError | None = None

    async def start(self, *, on_frames: Any, on_kv: Any) -> EngineInfo:
        self.step = on_frames
        return EngineInfo(16, 1000, 1000, 8)

    async def look(self, job: Job) -> None:
        await self.sight.wait()
        if self.refuses is not None:
            raise self.refuses

    def begin(self, job: Job) -> None:
        self.begun.append(job.turn)

    def abort(self, turn: str) -> None:
        self.aborted.append(turn)

    def stats(self) -> EngineStats:
        return EngineStats()

    async def stop(self) -> None:
        pass

    async def check(self) -> None:
        if self.dead:
            raise EngineError(self.dead)


class Lanes:
    """One lane, whose other end is a list."""

    names = ("parser",)

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.left: list[str] = []
        self.opened: list[Opening] = []
        self.lane: FrameLane | None = FrameLane(self.push, on_lost=lambda _: None)

    def push(self, data: bytes) -> Awaitable[object]:
        step = decode_step(data)
        self.frames += step.frames
        self.left += step.left
        self.opened += step.opened
        return asyncio.get_running_loop().create_future()

    async def start(self, on_lost: Any) -> None:
        self.on_lost = on_lost

    def pick(self, ingress: str) -> FrameLane | None:
        return self.lane

    def stop(self) -> None:
        pass


class Silent:
    async def report(self, card: ReplicaCard, stats: EngineStats, told: int) -> bool:
        return True

    async def kv(self, model: str, replica: str, number: int, events: Sequence[KvEvent]) -> bool:
        return True

    async def restock(self, *_: Any, **__: Any) -> bool:
        return True


async def started() -> tuple[EngineReplica, Engine, Lanes]:
    engine, lanes = Engine(), Lanes()
    replica = EngineReplica(
        replica="r",
        model="m",
        engine=engine,
        lanes=lanes,
        reporter=Silent(),  # type: ignore[arg-type]
        report_every=0.001,
    )
    await replica.start()
    return replica, engine, lanes


def job(turn: str = "t", **fields: Any) -> bytes:
    return msgspec.msgpack.encode(Job(turn, [1, 2], Sampling(), ParseSpec("f", ""), **fields))


async def begin(replica: EngineReplica) -> asyncio.Task[bytes]:
    lease = asyncio.ensure_future(replica.lease(job(), "ingress"))
    await asyncio.sleep(0)
    return lease


async def test_lease_ends_with_the_last_frame() -> None:
    replica, engine, lanes = await started()
    lease = await begin(replica)
    engine.step([Frame("t", [5], 0)])
    engine.step([Frame("t", [6], finish="stop")])
    assert decode_lease_end(await lease) == LeaseEnd()
    assert [frame.ids for frame in lanes.frames] == [[5], [6]]
    assert (engine.aborted, replica.open_turns) == ([], 0)
    await replica.stop()


async def test_lease_that_is_left_aborts_its_turn_and_tells_the_parser() -> None:
    replica, engine, lanes = await started()
    lease = await begin(replica)
    engine.step([Frame("t", [5], 0)])
    lease.cancel()
    await asyncio.wait([lease])
    assert (engine.aborted, replica.open_turns) == (["t"], 0)
    assert lanes.left == ["t"]
    engine.step([Frame("t", [], finish="abort")])
    assert len(lanes.frames) == 1
    await replica.stop()


PICTURE = Picture("d", "image/png", b"...", 1, 1, 0, 1, 7)


async def test_a_turn_begins_once_its_pictures_were_read() -> None:
    replica, engine, lanes = await started()
    lease = asyncio.ensure_future(replica.lease(job(pictures=(PICTURE,)), "ingress"))
    await asyncio.sleep(0)
    assert replica.held(["t", "u"]) == ["t"]
    assert (engine.begun, lanes.opened) == ([], [])
    engine.sight.set()
    for _ in range(3):
        await asyncio.sleep(0)
    assert engine.begun == ["t"]
    engine.step([Frame("t", [6], finish="stop")])
    assert decode_lease_end(await lease) == LeaseEnd()
    assert replica.held(["t"]) == []
    await replica.stop()


async def test_a_picture_that_cannot_be_read_refuses_the_turn() -> None:
    replica, engine, lanes = await started()
    engine.sight.set()
    engine.refuses = InvalidRequestError("image 1 cannot be read")
    end = decode_lease_end(await replica.lease(job(pictures=(PICTURE,)), "ingress"))
    assert (end.kind, end.message) == ("invalid_request", "image 1 cannot be read")
    assert (engine.begun, lanes.opened, replica.held(["t"])) == ([], [], [])
    await replica.stop()


async def test_lost_lane_ends_its_leases_and_aborts_their_turns() -> None:
    replica, engine, lanes = await started()
    lease = await begin(replica)
    lanes.on_lost(lanes.lane, RuntimeError("dead"))
    end = decode_lease_end(await lease)
    assert (end.kind, end.lost) == ("engine", True)
    assert (engine.aborted, replica.open_turns) == (["t"], 0)
    await replica.stop()


async def test_replica_without_a_parser_begins_nothing() -> None:
    replica, engine, lanes = await started()
    lanes.lane = None
    end = decode_lease_end(await replica.lease(job(), "ingress"))
    assert (end.kind, engine.begun) == ("unavailable", [])
    await replica.stop()


async def test_turn_that_its_engine_fails_has_failed() -> None:
    replica, engine, lanes = await started()
    lease = await begin(replica)
    engine.step([Frame("t", [5], 0)])
    engine.step([Frame("t", [], finish="error", error="no such thing")])
    assert decode_lease_end(await lease) == LeaseEnd("engine", "no such thing")
    assert [frame.finish for frame in lanes.frames] == [None, "error"]
    await replica.stop()


async def test_turn_that_dies_with_its_engine_is_lost_and_its_reader_hears_nothing() -> None:
    replica, engine, lanes = await started()
    lease = await begin(replica)
    engine.dead = "the engine died"
    engine.step([Frame("t", [], finish="error", error="the engine died")])
    assert decode_lease_end(await lease) == LeaseEnd("engine", "the engine died", lost=True)
    assert (lanes.frames, lanes.left) == ([], ["t"])
    refused = decode_lease_end(await replica.lease(job(), "ingress"))
    assert refused.kind == "unavailable"
    await replica.stop()


async def test_turn_that_another_replica_was_asked_for_is_not_begun() -> None:
    replica, engine, lanes = await started()
    end = decode_lease_end(await replica.lease(job(), "ingress", "another"))
    assert (end.kind, end.lost) == ("unavailable", True)
    assert (engine.begun, lanes.opened, replica.open_turns) == ([], [], 0)
    await replica.stop()


async def test_engine_that_hangs_loses_its_turns_until_it_steps_again() -> None:
    replica, engine, lanes = await started()
    lease = await begin(replica)
    assert replica.held(["t", "another"]) == ["t"]
    engine.dead = "no step"
    end = decode_lease_end(await asyncio.wait_for(lease, 5))
    assert (end.lost, engine.aborted, lanes.left) == (True, ["t"], ["t"])
    engine.step([Frame("t", [], finish="abort")])
    assert lanes.frames == []
    engine.dead = ""
    async with asyncio.timeout(5):
        while not engine.begun[1:]:
            lease = await begin(replica)
    engine.step([Frame("t", [5], finish="stop")])
    assert decode_lease_end(await lease) == LeaseEnd()
    await replica.stop()


async def test_turns_of_a_replica_that_stops_go_on_elsewhere() -> None:
    replica, _, _ = await started()
    lease = await begin(replica)
    await replica.stop()
    assert decode_lease_end(await lease).lost


async def test_later_leg_brings_what_was_said_to_the_parser() -> None:
    replica, engine, lanes = await started()
    leg = Job("t~1", [1, 2, 7], Sampling(), ParseSpec("f", ""), stop_ids=(9,), resumed=1)
    lease = asyncio.ensure_future(replica.lease(msgspec.msgpack.encode(leg), "ingress"))
    await asyncio.sleep(0)
    engine.step([Frame("t~1", [8], 0, "stop")])
    await lease
    (opening,) = lanes.opened
    assert (opening.input_tokens, opening.said) == (2, [7])
    await replica.stop()


async def test_leg_that_was_over_already_does_not_reach_the_engine() -> None:
    replica, engine, lanes = await started()
    leg = Job("t~1", [1, 2, 9], Sampling(), ParseSpec("f", ""), stop_ids=(9,), resumed=1)
    end = await replica.lease(msgspec.msgpack.encode(leg), "ingress")
    assert decode_lease_end(end) == LeaseEnd()
    assert engine.begun == []
    assert [frame.finish for frame in lanes.frames] == ["stop"]
    await replica.stop()
