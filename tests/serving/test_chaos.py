"""Chaos in one process: seeded losses under load, and no stream shows any of them.

Engines and parsers die and freeze, turns are parked, whatever runs and whenever. The same load against
real processes: `just chaos`.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable

import pytest

from actors import vigil
from tests.cluster.chaos import Load, Seen
from tests.serving.server import MODEL, Replica, Server, serving, settings
from tests.serving.waits import until

LOSSES = int(os.environ.get("TREADLE_CHAOS_LOSSES", "25"))
SCENARIO = "tests/cluster/scenario.yaml"


def quick() -> object:
    """Three engines of a millisecond a token; a turn may be as unlucky as it likes."""
    engine = {"replicas": 3, "options": {"scenario": SCENARIO, "step_ms": 1, "hang_s": 60}}
    failover = {"moves": 1000, "quiet_s": 0.3}
    return settings(model={"engine": engine}, failover=failover)


async def lose(server: Server, replica: Replica, chance: random.Random) -> None:
    """One loss, of a kind drawn by chance; the replica is replaced where it is not to be saved."""
    ways: list[Callable[[Replica], None]] = [server.kill, server.lose_lane, Replica.freeze]
    way = chance.choices([*ways, None], [6, 2, 1, 2])[0]
    if way is None:
        for flight in server.conductor.flights()[:3]:
            server.conductor.park(flight.turn)
        return
    held = legs_on(server, replica)
    way(replica)
    if way != server.kill:  # what it runs now leaves it; other turns may come to it meanwhile
        await until(lambda: not held & legs_on(server, replica))
        server.kill(replica)
    await server.replace(replica)


def legs_on(server: Server, replica: Replica) -> set[str]:
    return {f.leg for f in server.conductor.flights() if f.leg and f.replica == replica.name}


@pytest.mark.timeout(300)
async def test_no_stream_shows_what_was_lost_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vigil, "ANSWER_WITHIN", 0.1)
    monkeypatch.setattr(vigil, "LOOK_EVERY", 0.05)
    monkeypatch.setattr("actors.model_service.SHUN_FOR", 0.05)
    chance = random.Random(20_26)
    async with serving(quick()) as server:
        seen = Seen()
        load = Load(int(server.url.rsplit(":", 1)[1]), 7, seen, words=(20, 150))
        clients = [asyncio.ensure_future(load.client()) for _ in range(8)]
        for _ in range(LOSSES):
            alive = list(server.replicas[MODEL].values())
            busy = [replica for replica in alive if replica.inner.open_turns]
            await lose(server, chance.choice(busy or alive), chance)
            await asyncio.sleep(chance.random() * 0.02)  # at any point of a turn
        load.over = True
        await asyncio.gather(*clients)
        assert seen.wrong == []
        assert seen.cut + seen.refused == 0
        assert seen.whole >= LOSSES / 10
        moved = server.metrics.registry.get_sample_value("treadle_turns_moved_total") or 0
        assert moved >= LOSSES / 2
        assert len(server.conductor) == 0
        for replica in server.replicas[MODEL].values():
            assert not replica.inner.open_turns
            await until(lambda replica=replica: not replica.lanes.parsing)
        await until(lambda: not server.reserved(MODEL))
