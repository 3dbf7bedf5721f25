"""The conductor's laws: one terminal event a turn, everything released once, nothing left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from actors.conductor import Conductor, Flight
from actors.messages import LeaseEnd, encode
from turns.events import Event, TextDelta, TurnEnded, TurnFailed, TurnStarted, Usage
from turns.frames import EventBatch, Job, ParseSpec
from turns.turn import Sampling

ENDED = TurnEnded("end", Usage(3, 0, 1))


class Recorder:
    """A sink and a watch."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.cached: list[int] = []
        self.landings = 0

    def take(self, events: list[Event]) -> None:
        self.events += events

    def began(self, cached: int) -> None:
        self.cached.append(cached)

    def generated(self, ids: Sequence[int]) -> None:
        self.output = list(ids)

    def landed(self) -> None:
        self.landings += 1


class Call:
    """Leases that end when the test says so; `lease` is the last one."""

    def __init__(self) -> None:
        self.replicas: list[str] = []

    def __call__(self, job: bytes, replica: str) -> asyncio.Future[bytes]:
        self.replicas.append(replica)
        self.lease: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        return self.lease


def begin(conductor: Conductor, turn: str = "t") -> tuple[Flight, Recorder, Call]:
    recorder, call = Recorder(), Call()
    job = Job(turn, [1, 2, 3], Sampling(), ParseSpec("qwen3", ""))
    return conductor.begin(job, call, ["r1", "r2"], recorder, recorder), recorder, call


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def batch(*events: Event, turn: str = "t") -> list[EventBatch]:
    return [EventBatch(turn, list(events))]


async def test_turn_runs_to_its_end() -> None:
    conductor = Conductor()
    _, recorder, call = begin(conductor)
    await settle()
    conductor.deliver(batch(TurnStarted(3, 2), TextDelta("a")), "lane")
    conductor.deliver(batch(ENDED), "lane")
    call.lease.set_result(encode(LeaseEnd()))
    await settle()
    assert recorder.events == [TurnStarted(3, 2), TextDelta("a"), ENDED]
    assert (recorder.cached, recorder.landings, len(conductor)) == ([2], 1, 0)


async def test_turn_that_nobody_begins_fails_with_the_last_reason() -> None:
    conductor = Conductor()
    flight, recorder, call = begin(conductor)
    await settle()
    call.lease.set_result(encode(LeaseEnd("unavailable", "restarting", 1)))
    await settle()
    assert recorder.events == []
    call.lease.set_result(encode(LeaseEnd("overloaded", "full", 7)))
    await settle()
    assert call.replicas == ["r1", "r2"]
    assert recorder.events == [TurnFailed("overloaded", "full")]
    assert (flight.retry_after, recorder.landings, len(conductor)) == (7, 1, 0)


async def test_turn_that_one_replica_refuses_runs_on_another() -> None:
    conductor = Conductor()
    _, recorder, call = begin(conductor)
    await settle()
    call.lease.set_result(encode(LeaseEnd("unavailable", "restarting")))
    await settle()
    conductor.deliver(batch(TurnStarted(3), ENDED), "lane")
    call.lease.set_result(encode(LeaseEnd()))
    await settle()
    assert recorder.events == [TurnStarted(3), ENDED]
    assert (recorder.landings, len(conductor)) == (1, 0)


async def test_turn_that_broke_is_not_begun_again() -> None:
    conductor = Conductor()
    _, recorder, call = begin(conductor)
    await settle()
    call.lease.set_result(encode(LeaseEnd("engine", "broken")))
    await settle()
    assert call.replicas == ["r1"]
    assert recorder.events == [TurnFailed("engine", "broken")]


async def test_death_of_the_replica_fails_its_turns_once() -> None:
    conductor = Conductor()
    _, recorder, call = begin(conductor)
    await settle()
    conductor.deliver(batch(TurnStarted(3)), "lane")
    call.lease.set_exception(RuntimeError("secret detail"))
    conductor.lane_lost("lane")
    await settle()
    failed = [e for e in recorder.events if isinstance(e, TurnFailed)]
    assert len(failed) == 1
    assert failed[0].kind == "engine"
    assert "secret" not in failed[0].message
    assert (recorder.landings, len(conductor)) == (1, 0)


async def test_lost_lane_fails_exactly_the_turns_on_it() -> None:
    conductor = Conductor()
    _, one, _ = begin(conductor, "one")
    _, two, _ = begin(conductor, "two")
    await settle()
    conductor.deliver(batch(TurnStarted(3), turn="one"), "lane-1")
    conductor.deliver(batch(TurnStarted(3), turn="two"), "lane-2")
    conductor.lane_lost("lane-1")
    assert isinstance(one.events[-1], TurnFailed)
    assert two.events == [TurnStarted(3)]
    assert len(conductor) == 1


async def test_client_that_leaves_cancels_the_lease_and_hears_nothing_more() -> None:
    conductor = Conductor()
    flight, recorder, call = begin(conductor)
    await settle()
    conductor.cancel(flight)
    conductor.cancel(flight)
    await settle()
    conductor.deliver(batch(TextDelta("late")), "lane")
    assert call.lease.cancelled()
    assert (recorder.events, recorder.landings, len(conductor)) == ([], 1, 0)


async def test_lease_that_ends_without_its_events_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.conductor.LAST_EVENTS_WAIT", 0.01)
    conductor = Conductor()
    flight, recorder, call = begin(conductor)
    await settle()
    call.lease.set_result(encode(LeaseEnd()))
    await asyncio.wait_for(flight.landed.wait(), 5)
    assert isinstance(recorder.events[-1], TurnFailed)


async def test_engine_that_runs_on_after_the_parser_ended_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.conductor.END_GRACE", 0.01)
    conductor = Conductor()
    _, recorder, call = begin(conductor)
    await settle()
    conductor.deliver(batch(TurnStarted(3), TurnEnded("stop_sequence", Usage(), "X")), "lane")
    await asyncio.wait([call.lease], timeout=5)
    assert call.lease.cancelled()
    assert recorder.landings == 1
