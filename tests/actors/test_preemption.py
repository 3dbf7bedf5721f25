"""Who makes room for whom, and how an ingress is told."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from actors import preemption
from actors.preemption import Orders, Preemption
from router.decision import Ask, Choice


def ask(turn: str, priority: int, tier: int = 0, owner: str = "ingress") -> Ask:
    return Ask(turn=turn, hashes=[], prompt_tokens=1, priority=priority, tier=tier, owner=owner)


def placed(*asks: Ask) -> Preemption:
    found = Preemption()
    for one in asks:
        found.placed(one, Choice("r", 0, "load", one.turn))
    return found


@pytest.mark.parametrize(
    ("running", "waiting", "parked"),
    [
        pytest.param([ask("a", 0), ask("b", 0)], ask("x", 5), "b", id="the newest of the least"),
        pytest.param([ask("a", -1), ask("b", 0)], ask("x", 5), "a", id="the least urgent"),
        pytest.param([ask("a", 5), ask("b", 7)], ask("x", 5), None, id="nobody is less urgent"),
        pytest.param([ask("a", 9)], ask("x", 0, tier=1), "a", id="a tier above all priorities"),
        pytest.param([ask("a", 0, owner="")], ask("x", 5), None, id="nobody to tell"),
    ],
)
def test_victim(running: list[Ask], waiting: Ask, parked: str | None) -> None:
    place = placed(*running).victim(waiting, {one.turn for one in running})
    assert (place.turn if place else None) == parked


def test_nobody_makes_room_where_the_turn_may_not_go() -> None:
    waiting = replace(ask("x", 5), exclude=("r",))
    assert placed(ask("a", 0)).victim(waiting, {"a"}) is None


def test_place_is_given_up_once() -> None:
    places = placed(ask("a", 0))
    assert places.victim(ask("x", 1), {"a"})
    assert places.victim(ask("y", 1), {"a"}) is None


def test_who_stays_is_not_tried_again_for_the_same_turn() -> None:
    places, held = placed(ask("a", 0), ask("b", 0)), {"a", "b"}
    urgent, tried = ask("x", 1), []
    place = places.victim(urgent, held)
    while place is not None:
        tried.append(place.turn)
        order = places.stays(place.turn)
        assert order is not None
        place = places.victim(order.ask, held, order.tried)
    assert tried == ["b", "a"]
    assert places.stays("a stranger") is None
    assert places.victim(ask("y", 1), held), "another turn may ask again"
    places.over("a")
    places.over("b")
    assert len(places) == 0


def test_place_that_is_free_or_that_the_router_ended_is_nobodys() -> None:
    places = placed(ask("a", 0), ask("b", 0))
    places.over("a")
    places.over("a stranger")
    assert places.victim(ask("x", 1), set()) is None
    assert len(places) == 0


async def test_orders_come_to_who_waits_and_to_who_asks_later() -> None:
    orders = Orders()
    waiting = asyncio.ensure_future(orders.take("one"))
    await asyncio.sleep(0)
    orders.park("two", "t2")
    orders.park("one", "t1")
    assert await waiting == ["t1"]
    orders.park("two", "t3")
    assert await orders.take("two") == ["t2", "t3"]


async def test_there_is_one_who_waits_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = Orders()
    first = asyncio.ensure_future(orders.take("one"))
    await asyncio.sleep(0)
    monkeypatch.setattr(preemption, "ORDERS_WAIT", 0.01)
    assert await orders.take("one") == []
    assert await first == []
    orders.park("one", "t")
    orders.forget("one")
    assert await orders.take("one") == []
