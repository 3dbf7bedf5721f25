"""Every store under the same roof: a `Rig` is a store whose time can be moved forward."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from redis import Redis

from sessions.memory_store import MemoryStore
from sessions.redis_store import RedisStore
from sessions.store import Store
from sessions.valkey_server import EmbeddedValkey, ValkeyOptions


class MemoryRig:
    def __init__(self) -> None:
        self.now = 0.0
        self.store: Store = MemoryStore(clock=lambda: self.now)

    def advance(self, seconds: float) -> None:
        self.now += seconds


class RedisRig:
    """Its time moves by taking it off every key's life."""

    def __init__(self, url: str) -> None:
        self.server = Redis.from_url(url)
        self.server.flushdb()
        self.store: Store = RedisStore(url)

    def advance(self, seconds: float) -> None:
        for key in self.server.scan_iter():
            life = int(self.server.pttl(key))
            left = life - round(seconds * 1000)
            if life == -1:  # it lives for ever
                continue
            if left > 0:
                self.server.pexpire(key, left)
            else:
                self.server.delete(key)

    def close(self) -> None:
        self.server.close()


Rig = MemoryRig | RedisRig


@pytest.fixture(scope="session")
def valkey() -> Iterator[EmbeddedValkey]:
    server = EmbeddedValkey(options=ValkeyOptions(keep=False))
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["memory", "redis"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    made: Rig = (
        MemoryRig()
        if request.param == "memory"
        else RedisRig(request.getfixturevalue("valkey").url)
    )
    yield made
    await made.store.close()
    if isinstance(made, RedisRig):
        made.close()
