"""The conductor's laws: one terminal event a turn, everything released once, nothing left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from actors.conductor import Conductor, Perseverance
from actors.messages import LeaseEnd, encode
from tests.actors.flying import Recorder, batch, begin, settle, wait_until
from turns.errors import OverloadedError
from turns.events import TextDelta, TurnEnded, TurnFailed, TurnStarted, Usage
from turns.frames import EventBatch

ENDED = TurnEnded("end", Usage(3, 0, 1))


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


async def test_turn_goes_on_elsewhere_when_its_replica_dies() -> None:
    conductor = Conductor()
    _, recorder, call = begin(conductor)
    await settle()
    conductor.deliver(batch(TurnStarted(3, 2), TextDelta("a"), ids=[7]), "lane")
    call.lease.set_exception(RuntimeError("it died"))
    conductor.lane_lost("lane")
    await settle()
    assert recorder.asked == [([7], "r1")]
    leg = call.jobs[-1]
    assert (leg.turn, leg.prompt, leg.resumed) == ("t~1", [1, 2, 3, 7], 1)
    assert leg.sampling.max_tokens == 8
    conductor.deliver(batch(TextDelta("late"), ids=[8]), "lane")
    conductor.deliver(batch(TurnStarted(3, 0), TextDelta("b"), turn="t~1", ids=[8]), "lane")
    conductor.deliver(batch(TurnEnded("end", Usage(3, 0, 3)), turn="t~1", ids=[9]), "lane")
    end = TurnEnded("end", Usage(3, 2, 3))  # cached as the turn began
    assert recorder.events == [TurnStarted(3, 2), TextDelta("a"), TextDelta("b"), end]
    assert (recorder.output, recorder.cached, recorder.landings) == ([7, 8, 9], [2, 0], 1)
    assert len(conductor) == 0


async def test_turn_is_moved_so_often_and_no_more() -> None:
    conductor = Conductor(Perseverance(moves=2))
    _, recorder, call = begin(conductor)
    for _ in range(3):
        await settle()
        call.lease.set_exception(RuntimeError("secret detail"))
    await settle()
    assert len(call.replicas) == 3
    (failed,) = recorder.events
    assert isinstance(failed, TurnFailed)
    assert failed.kind == "engine"
    assert "secret" not in failed.message
    assert (recorder.landings, len(conductor)) == (1, 0)


async def test_turn_whose_replica_is_gone_before_it_began_has_lost_nothing() -> None:
    conductor = Conductor(Perseverance(moves=0))
    _, recorder, call = begin(conductor)
    gone = encode(LeaseEnd("unavailable", "gone", lost=True))
    await settle()
    for _ in range(2):  # r1, r2
        call.lease.set_result(gone)
        await settle()
    await wait_until(lambda: len(call.leases) == 3)
    conductor.deliver(batch(TurnStarted(3, 0), ENDED, turn=call.jobs[-1].turn), "lane")
    call.lease.set_result(encode(LeaseEnd()))
    await settle()
    assert recorder.events[-1:] == [ENDED]
    assert (call.replicas, recorder.landings, len(conductor)) == (["r1", "r2", "r2"], 1, 0)


async def test_lost_lane_moves_exactly_the_turns_on_it() -> None:
    conductor = Conductor()
    _, one, first = begin(conductor, "one")
    _, two, second = begin(conductor, "two")
    await settle()
    conductor.deliver(batch(TurnStarted(3), turn="one"), "lane-1")
    conductor.deliver(batch(TurnStarted(3), turn="two"), "lane-2")
    lost = first.lease
    assert conductor.lane_lost("lane-1") == 1
    await settle()
    assert lost.cancelled()
    assert (len(first.replicas), len(second.replicas)) == (2, 1)
    assert one.events == two.events == [TurnStarted(3)]
    assert len(conductor) == 2


async def test_turn_waits_for_a_place_and_fails_when_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.conductor.PAUSE_FIRST", 0.001)
    conductor = Conductor()
    _, recorder, call = begin(conductor)
    await settle()
    recorder.places = [OverloadedError("full")] * 3
    call.lease.set_result(encode(LeaseEnd("engine", "it hangs", lost=True)))
    await wait_until(lambda: len(call.replicas) == 2)
    assert len(recorder.asked) == 4
    conductor = Conductor(Perseverance(patience=0.01))
    flight, recorder, call = begin(conductor)
    await settle()
    recorder.places = [OverloadedError("full")] * 99
    call.lease.set_result(encode(LeaseEnd("engine", "it hangs", lost=True)))
    await asyncio.wait_for(flight.landed.wait(), 5)
    assert recorder.events == [TurnFailed("overloaded", "full")]


async def test_parked_turn_leaves_its_place_and_goes_on_later() -> None:
    conductor = Conductor(Perseverance(moves=0))
    _, recorder, call = begin(conductor)
    await settle()
    conductor.deliver(batch(TurnStarted(3), TextDelta("a"), ids=[7]), "lane")
    lease = call.lease
    assert conductor.park("t")
    await settle()
    assert lease.cancelled()
    assert recorder.asked == [([7], "")]
    assert (call.jobs[-1].turn, len(conductor)) == ("t~1", 1)
    assert conductor.park("a stranger"), "it holds nothing"


async def test_turn_of_a_slow_reader_goes_on_when_it_has_read() -> None:
    conductor = Conductor()
    flight, recorder, call = begin(conductor)
    await settle()
    conductor.deliver(batch(TurnStarted(3), TextDelta("a"), ids=[7]), "lane")
    conductor.hold(flight)
    await settle()
    assert call.lease.cancelled()
    assert (recorder.asked, recorder.given_up) == ([], 1)
    conductor.resume(flight)
    await settle()
    assert call.jobs[-1].turn == "t~1"


@pytest.mark.parametrize("passes", [0, 1, 8], ids=["at once", "as it starts", "on its replica"])
async def test_step_that_begins_while_its_reader_is_behind_goes_on_when_it_has_read(
    passes: int,
) -> None:
    conductor = Conductor()
    outer = conductor.carry("outer", Recorder(), asyncio.sleep(60))
    conductor.hold(outer)
    step, recorder, call = begin(conductor)
    for _ in range(passes):
        await asyncio.sleep(0)
    conductor.within(outer, step)
    await settle()
    assert not any(not lease.done() for lease in call.leases)
    assert recorder.given_up == 1
    conductor.resume(outer)
    await settle()
    assert not call.leases[-1].done()
    conductor.deliver(batch(TurnStarted(3), ENDED, turn=call.jobs[-1].turn), "lane")
    await settle()
    assert recorder.landings == 1
    conductor.cancel(outer)


async def test_client_that_leaves_between_two_places_ends_the_turn() -> None:
    conductor = Conductor()
    flight, recorder, call = begin(conductor)
    await settle()
    recorder.places = [OverloadedError("full")] * 9
    call.lease.set_exception(RuntimeError("it died"))
    await settle()
    conductor.cancel(flight)
    await settle()
    assert flight.task is not None
    assert flight.task.cancelled()
    assert (recorder.events, recorder.landings, len(conductor)) == ([], 1, 0)


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


async def test_lease_that_ends_without_its_events_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.conductor.LAST_EVENTS_WAIT", 0.01)
    conductor = Conductor()
    _, recorder, call = begin(conductor)
    await settle()
    conductor.deliver(batch(TurnStarted(3), TextDelta("a"), ids=[7]), "lane")
    call.lease.set_result(encode(LeaseEnd()))
    await wait_until(lambda: len(call.replicas) == 2)
    assert recorder.asked == [([7], "r1")]


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


async def test_turn_that_is_held_while_it_looks_for_a_place_takes_none() -> None:
    conductor = Conductor()
    flight, recorder, call = begin(conductor)
    await settle()
    conductor.deliver([EventBatch("t", [TurnStarted(0), TextDelta("a")], ids=[7])], "lane")
    places: list[asyncio.Future[Sequence[str]]] = []

    async def again(_said: Sequence[int], _lost: str) -> Sequence[str]:
        places.append(asyncio.get_running_loop().create_future())
        return await places[-1]

    recorder.again = again  # type: ignore[method-assign]
    conductor.lane_lost("lane")
    await settle()
    conductor.hold(flight)
    places[0].set_result(["r2"])
    await settle()
    assert (len(call.jobs), recorder.given_up) == (1, 1)
    conductor.resume(flight)
    await wait_until(lambda: len(places) == 2)
    places[1].set_result(["r2"])
    await wait_until(lambda: len(call.jobs) == 2)
    conductor.cancel(flight)


async def test_turn_that_others_are_made_of_is_held_with_them() -> None:
    conductor = Conductor()
    outer = conductor.carry("outer", Recorder(), asyncio.sleep(60))
    first, *_ = begin(conductor, "first")
    conductor.within(outer, first)
    conductor.hold(outer)
    assert not first.clear.is_set()
    second, *_ = begin(conductor, "second")
    conductor.within(outer, second)
    assert not second.clear.is_set()
    conductor.resume(outer)
    assert second.clear.is_set()
    for flight in (outer, first, second):
        conductor.cancel(flight)
