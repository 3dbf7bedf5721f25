from __future__ import annotations

from sessions.memory_store import MemoryStore
from sessions.records import LEDGER, TURNS
from sessions.store import write


async def test_the_longest_untouched_goes_when_the_bytes_are_full() -> None:
    store = MemoryStore(max_bytes=4000)
    for name in "abc":
        await store.put(write(LEDGER, "o", name, bytes(1000), ttl=60))
    await store.get(LEDGER, "o", "a")
    await store.put(write(LEDGER, "o", "d", bytes(1000), ttl=60))
    found = await store.get(LEDGER, "o", *"abcd")
    assert [value is not None for value in found] == [True, False, True, True]
    assert store.bytes <= 4000


async def test_a_record_larger_than_all_room_is_not_kept() -> None:
    store = MemoryStore(max_bytes=100)
    await store.put(write(LEDGER, "o", "a", bytes(1000), ttl=60))
    assert await store.get(LEDGER, "o", "a") == [None]
    assert store.bytes == 0


async def test_bytes_come_back_to_zero() -> None:
    store = MemoryStore()
    await store.put(write(LEDGER, "o", "a", b"1", ttl=60), write(LEDGER, "o", "a", b"22", ttl=60))
    await store.append(TURNS, "o", "s", ["1", "2"], ttl=60, keep=1)
    assert await store.delete(LEDGER, "o", "a") + await store.delete(TURNS, "o", "s") == 2
    assert store.bytes == 0
