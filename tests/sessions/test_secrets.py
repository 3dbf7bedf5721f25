"""A cluster has one secret."""

from __future__ import annotations

from sessions.memory_store import MemoryStore
from sessions.secrets import cluster_secret


async def test_secret_is_made_once() -> None:
    store = MemoryStore()
    first = await cluster_secret(store)
    assert len(first) == 64
    assert await cluster_secret(store) == first
    assert await cluster_secret(MemoryStore()) != first
