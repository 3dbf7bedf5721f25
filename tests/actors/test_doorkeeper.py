from __future__ import annotations

import asyncio

import pytest

from access.keys import Key
from actors import doorkeeper
from actors.doorkeeper import Doorkeeper, Rules
from actors.keyring import Keyring
from sessions.memory_store import MemoryStore
from turns.errors import AuthenticationError, UnavailableError


class House:
    """A doorkeeper whose look-ups are counted, and whose store can be away."""

    def __init__(self, *, cache_s: float = 10.0, stale_s: float = 300.0) -> None:
        self.now = 1_000.0
        self.keyring = Keyring(MemoryStore(), clock=lambda: self.now)
        self.asked: list[str] = []
        self.away = False
        rules = Rules(required=True, cache_s=cache_s, stale_s=stale_s)
        self.doors = Doorkeeper(rules, self.look_up, clock=lambda: self.now)

    async def look_up(self, key_id: str) -> Key | None:
        self.asked.append(key_id)
        if self.away:
            raise UnavailableError("the store is away")
        return await self.keyring.find(key_id)

    async def tries(self, key: str) -> str:
        return (await self.doors.caller({"x-api-key": key}, "turns")).tenant


@pytest.fixture
def house() -> House:
    return House()


async def test_a_key_is_looked_up_once_in_a_while(house: House) -> None:
    _, key = await house.keyring.add(tenant="acme")
    for _ in range(100):
        assert await house.tries(key) == "acme"
    assert len(house.asked) == 1
    house.now += 10
    await house.tries(key)
    assert len(house.asked) == 2


async def test_a_revoked_key_is_out_at_once_here_and_soon_elsewhere(house: House) -> None:
    kept, key = await house.keyring.add(tenant="acme")
    await house.tries(key)
    await house.keyring.revoke(kept.id)
    assert await house.tries(key) == "acme"  # another ingress revoked it
    house.now += 10
    with pytest.raises(AuthenticationError):
        await house.tries(key)
    kept, key = await house.keyring.add(tenant="acme")
    await house.tries(key)
    await house.keyring.revoke(kept.id)
    house.doors.forget(kept.id)
    with pytest.raises(AuthenticationError):
        await house.tries(key)


async def test_a_look_up_that_a_revocation_overtakes_is_not_remembered(house: House) -> None:
    kept, key = await house.keyring.add(tenant="acme")
    look_up = house.look_up

    async def overtaken(key_id: str) -> Key | None:
        found = await look_up(key_id)
        await house.keyring.revoke(key_id)
        house.doors.forget(key_id)
        return found

    house.doors = Doorkeeper(house.doors.rules, overtaken, clock=lambda: house.now)
    assert await house.tries(key) == "acme"
    with pytest.raises(AuthenticationError):
        await house.tries(key)
    assert kept.id in house.asked


async def test_while_the_store_is_away_known_keys_work_for_a_while(house: House) -> None:
    _, key = await house.keyring.add(tenant="acme")
    _, other = await house.keyring.add(tenant="acme")
    await house.tries(key)
    house.away = True
    house.now += 299
    assert await house.tries(key) == "acme"
    with pytest.raises(UnavailableError):
        await house.tries(other)
    house.now += 1
    with pytest.raises(UnavailableError):
        await house.tries(key)


async def test_a_flood_of_ids_is_remembered_in_bounds(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorkeeper, "KNOWN", 100)
    for number in range(150):
        with pytest.raises(AuthenticationError):
            await house.tries(f"treadle-{number:012x}-{'s' * 43}")
    assert len(house.doors._known) == 100


async def test_a_key_that_is_known_costs_no_task(house: House) -> None:
    """A request with a known key does not wait for anything."""
    _, key = await house.keyring.add(tenant="acme")
    await house.tries(key)
    coroutine = house.doors.caller({"x-api-key": key}, "turns")
    with pytest.raises(StopIteration):
        coroutine.send(None)
    assert len(asyncio.all_tasks()) == 1
