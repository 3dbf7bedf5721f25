"""Between a replica and the router: numbered batches, and a snapshot after anything was missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import pytest

from actors import kv_telling
from actors.engines.engine import EngineStats
from actors.kv_telling import KvTelling
from actors.messages import ReplicaCard, encode
from actors.router_actor import RouterActor
from router.blocks import chain
from router.kv import KvEvent, KvRemoved, KvStored
from tests.serving.waits import until

IDS = list(range(48))
HASHES = chain(IDS, 16)
CARD = encode(ReplicaCard("r", "m", 16, 1000, 8, []))
STATS = encode(EngineStats())


class Wire:
    """The way to a router that can be cut."""

    def __init__(self) -> None:
        self.router = RouterActor()
        self.cut = False
        self.lose = 0
        self.snapshots = 0

    async def kv(self, model: str, replica: str, number: int, events: Sequence[KvEvent]) -> bool:
        if self.cut:
            raise ConnectionError
        if self.lose:
            self.lose -= 1
            return True
        return await self.router.kv(model, replica, number, encode(list(events)))

    async def restock(
        self,
        model: str,
        replica: str,
        number: int,
        holdings: Mapping[int, int],
        *,
        first: bool,
        last: bool,
    ) -> bool:
        if self.cut:
            raise ConnectionError
        self.snapshots += last
        return await self.router.restock(
            model, replica, number, encode(holdings), first=first, last=last
        )

    async def report(self, telling: KvTelling) -> None:
        if not await self.router.report(CARD, STATS, telling.acknowledged) or telling.owes:
            telling.owe()

    def seen(self) -> int:
        return self.router._model("m").router.index.overlap(HASHES).get("r", 0)


@pytest.fixture
async def ends(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Wire, KvTelling]]:
    monkeypatch.setattr(kv_telling, "EVERY", 0.001)
    monkeypatch.setattr(kv_telling, "PART", 2)
    wire = Wire()
    telling = KvTelling(wire, "m", "r")
    await wire.report(telling)
    yield wire, telling
    await telling.stop()


def stored(at: int) -> KvStored:
    return KvStored([at], at - 1 if at else None, IDS[at * 16 : at * 16 + 16], 16)


def sees(wire: Wire, blocks: int) -> Callable[[], bool]:
    return lambda: wire.seen() == blocks


async def test_what_the_engine_stores_is_seen(ends: tuple[Wire, KvTelling]) -> None:
    wire, telling = ends
    telling.take([stored(0), stored(1)])
    await until(sees(wire, 2))
    telling.take([stored(2)])
    telling.take([KvRemoved([1])])
    await until(sees(wire, 1))
    assert wire.snapshots == 0


async def test_a_batch_lost_on_the_way_is_made_up_for(ends: tuple[Wire, KvTelling]) -> None:
    wire, telling = ends
    telling.take([stored(0)])
    await until(sees(wire, 1))
    wire.lose = 1
    telling.take([stored(1)])
    await until(lambda: not wire.lose)
    telling.take([stored(2)])
    await until(sees(wire, 3))
    assert wire.snapshots == 1


async def test_the_last_batch_lost_is_found_by_the_next_report(
    ends: tuple[Wire, KvTelling],
) -> None:
    wire, telling = ends
    wire.lose = 1
    telling.take([stored(0)])
    await until(lambda: telling.acknowledged == 0)
    await wire.report(telling)
    await until(sees(wire, 1))


async def test_a_router_that_starts_anew_is_told_all(ends: tuple[Wire, KvTelling]) -> None:
    wire, telling = ends
    telling.take([stored(0), stored(1), stored(2)])
    await until(sees(wire, 3))
    wire.router = RouterActor()
    await wire.report(telling)
    await until(sees(wire, 3))
    assert wire.snapshots == 1


async def test_while_the_router_is_away_nothing_piles_up(
    ends: tuple[Wire, KvTelling], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, telling = ends
    monkeypatch.setattr(kv_telling, "MOST", 10)
    wire.cut = True
    for _ in range(100):
        telling.take([stored(0), stored(1)])
    await until(lambda: telling.owes and telling._sending is None)
    assert len(telling._pending) <= 10
    wire.cut = False
    await wire.report(telling)
    await until(sees(wire, 2))


async def test_a_replica_that_serve_let_go_is_not_heard(ends: tuple[Wire, KvTelling]) -> None:
    wire, telling = ends
    await wire.router.left("m", ["r"])
    await wire.report(telling)  # it drains
    assert await wire.router.load() == {"m": {}}
    await wire.router.came("m", ["r"])
    await wire.report(telling)
    assert list((await wire.router.load())["m"]) == ["r"]
    await asyncio.sleep(0)
