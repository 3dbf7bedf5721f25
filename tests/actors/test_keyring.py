"""The keyring before a store that does not take what it is told."""

from __future__ import annotations

import pytest

from actors.keyring import Keyring
from observe.taps import Quiet
from sessions.guarded_store import GuardedStore
from sessions.memory_store import MemoryStore
from sessions.records import Kind
from sessions.store import FOREVER, Write, write
from turns.errors import UnavailableError


class Deaf(MemoryStore):
    """Takes no writes while it is `deaf`, as the guarded store of Redis does while that is away."""

    deaf = False

    async def put(self, *writes: Write) -> bool:
        return not self.deaf and await super().put(*writes)


async def test_nobody_is_told_of_a_change_that_was_not_kept() -> None:
    store = Deaf()
    keyring = Keyring(store)
    key, _ = await keyring.add(tenant="a")
    store.deaf = True
    with pytest.raises(UnavailableError, match="ask again"):
        await keyring.revoke(key.id)
    with pytest.raises(UnavailableError, match="ask again"):
        await keyring.add(tenant="b")
    assert await keyring.every() == [key]
    store.deaf = False
    assert (await keyring.revoke(key.id)).revoked


async def test_a_key_that_cannot_be_read_hides_no_other() -> None:
    memory = MemoryStore()
    keyring = Keyring(GuardedStore(memory, Quiet()))
    made = [(await keyring.add(tenant=tenant))[0] for tenant in "abc"]
    await memory.put(write(Kind("api_key", int), "", made[1].id, 1, ttl=FOREVER))
    assert await keyring.every() == [made[0], made[2]]
    assert await keyring.find(made[1].id) is None
