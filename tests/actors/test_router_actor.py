"""The router actor's queue: a place that nobody comes for is given up, whoever is first."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from actors import router_actor
from actors.engines.engine import EngineStats
from actors.messages import Placement, ReplicaCard, Settlement, encode
from actors.router_actor import RouterActor
from router.decision import Ask, Choice, Decision, Queued, Refusal
from router.router import Settings

NOW = [1.0]
decode = msgspec.msgpack.Decoder(Decision).decode


async def full() -> tuple[RouterActor, Choice]:
    """A router whose one replica has one place, which is taken; two more may wait."""
    actor = RouterActor(Settings(queue_limit=2), clock=lambda: NOW[0])
    NOW[0] = 1.0
    card = ReplicaCard("r", "m", 16, 1000, 1, [])
    await actor.report(encode(card), encode(EngineStats()))
    taken = await choose(actor, "first")
    assert isinstance(taken, Choice)
    return actor, taken


async def choose(actor: RouterActor, turn: str, *exclude: str) -> Decision:
    ask = Ask(turn=turn, hashes=[], prompt_tokens=3, owner="ingress", exclude=exclude)
    return decode(await actor.choose("m", encode(ask)))


async def end(actor: RouterActor, choice: Choice) -> None:
    await actor.settle(encode([Settlement("m", choice.reservation, over=True)]))


async def turns(actor: RouterActor) -> int:
    return (await actor.load())["m"]["r"]["turns"]


async def test_queued_turn_gets_the_place_that_comes_free() -> None:
    actor, taken = await full()
    assert isinstance(await choose(actor, "second"), Queued)
    waits = asyncio.ensure_future(actor.admitted("m", "second"))
    await asyncio.sleep(0)
    await end(actor, taken)
    assert isinstance(decode(await waits), Choice)
    assert await turns(actor) == 1


async def test_place_of_a_client_that_left_goes_to_the_next() -> None:
    actor, taken = await full()
    for turn in ("second", "third"):
        assert isinstance(await choose(actor, turn), Queued)
    await actor.gone("m", "second")
    await end(actor, taken)
    assert isinstance(decode(await actor.admitted("m", "second")), Refusal)
    assert isinstance(decode(await actor.admitted("m", "third")), Choice)


async def test_place_that_was_given_meanwhile_is_given_up() -> None:
    actor, taken = await full()
    await choose(actor, "second")
    await end(actor, taken)
    assert await turns(actor) == 1
    await actor.gone("m", "second")
    assert await turns(actor) == 0


async def test_ingress_that_dies_while_it_waits_gives_up_its_place() -> None:
    actor, taken = await full()
    await choose(actor, "second")
    waits = asyncio.ensure_future(actor.admitted("m", "second"))
    await asyncio.sleep(0)
    waits.cancel()
    await asyncio.wait([waits])
    await end(actor, taken)
    assert await turns(actor) == 0


async def test_ingress_that_falls_silent_gives_up_its_places() -> None:
    actor, _ = await full()
    card = ReplicaCard("r", "m", 16, 1000, 1, [])
    for now in (8.0, 16.0):
        NOW[0] = now
        await actor.report(encode(card), encode(EngineStats()))
        await actor.present("ingress")
        actor.tick()
    assert await turns(actor) == 1
    NOW[0] = 25.0
    await actor.report(encode(card), encode(EngineStats()))
    NOW[0] = 26.5
    actor.tick()
    assert await turns(actor) == 0


async def test_turn_that_its_ingress_placed_while_it_waited_is_counted_once() -> None:
    actor, taken = await full()
    await choose(actor, "second")
    waits = asyncio.ensure_future(actor.admitted("m", "second"))
    await asyncio.sleep(0)
    ask = Ask(turn="second", hashes=[], prompt_tokens=3, owner="ingress")
    own = Choice("r", 0, "hashed", "second@1")
    await actor.settle(encode([Placement("m", ask, own)]))
    assert isinstance(decode(await waits), Refusal)
    assert await turns(actor) == 2
    await end(actor, taken)
    await end(actor, own)
    assert await turns(actor) == 0


async def test_turn_that_is_asked_again_is_not_ended_by_the_clock_of_its_first_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(router_actor, "UNCLAIMED_FOR", 0.05)
    actor, taken = await full()
    await choose(actor, "second")
    waits = asyncio.ensure_future(actor.admitted("m", "second"))
    await asyncio.sleep(0)
    await end(actor, taken)
    first = decode(await waits)
    assert isinstance(first, Choice)
    await end(actor, first)  # declined
    assert isinstance(await choose(actor, "third"), Choice)
    assert isinstance(await choose(actor, "second"), Queued)
    again = asyncio.ensure_future(actor.admitted("m", "second"))
    done, _ = await asyncio.wait([again], timeout=0.2)
    assert not done
    again.cancel()


async def test_turns_that_declined_a_replica_too_early_get_it_when_it_came() -> None:
    actor, _ = await full()
    assert isinstance(await choose(actor, "second", "new"), Queued)
    waits = asyncio.ensure_future(actor.admitted("m", "second"))
    await actor.report(encode(ReplicaCard("new", "m", 16, 1000, 8, [])), encode(EngineStats()))
    assert not waits.done()
    await actor.came("m", ["new"])
    second = decode(await waits)
    assert isinstance(second, Choice)
    assert second.replica == "new"


async def test_turn_that_may_not_go_where_there_is_room_holds_up_no_other() -> None:
    actor, _ = await full()
    assert isinstance(await choose(actor, "second", "new"), Queued)
    await actor.report(encode(ReplicaCard("new", "m", 16, 1000, 8, [])), encode(EngineStats()))
    await choose(actor, "third")
    third = decode(await actor.admitted("m", "third"))
    assert isinstance(third, Choice)
    assert third.replica == "new"
    assert await actor.queued("m") == 1


async def crowded(*replicas: str) -> RouterActor:
    """A router that has turns make room, whose replicas have one place each."""
    actor = RouterActor(Settings(queue_limit=9), clock=lambda: NOW[0], preempt=True)
    NOW[0] = 1.0
    for name in replicas:
        card = ReplicaCard(name, "m", 16, 1000, 1, [])
        await actor.report(encode(card), encode(EngineStats()))
    return actor


async def urgent(actor: RouterActor) -> Decision:
    ask = Ask(turn="urgent", hashes=[], prompt_tokens=3, owner="ingress", priority=9)
    return decode(await actor.choose("m", encode(ask)))


async def test_where_one_turn_stays_another_makes_room() -> None:
    actor = await crowded("r", "s")
    for turn in ("older", "newer"):
        assert isinstance(await choose(actor, turn), Choice)
    assert isinstance(await urgent(actor), Queued)
    assert await actor.orders("ingress") == ["newer"]
    await actor.stays("newer")
    assert await actor.orders("ingress") == ["older"]
    await actor.gone("m", "urgent")
    await actor.stays("older")
    assert actor._orders._turns == {}, "nobody waits any more"


async def test_nobody_makes_room_for_a_turn_that_has_a_place() -> None:
    actor = await crowded("r", "s")
    assert isinstance(await choose(actor, "low", "s"), Choice)
    assert isinstance(await choose(actor, "elsewhere", "s"), Queued)
    assert isinstance(await urgent(actor), Queued)
    assert isinstance(decode(await actor.admitted("m", "urgent")), Choice)
    assert actor._orders._turns == {}
