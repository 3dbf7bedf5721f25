"""The guard before a real Valkey that is killed, hangs and comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sessions.guarded_store import GuardedStore
from sessions.memory_store import MemoryStore
from sessions.records import LEDGER, REPLY, RESPONSE, TURNS, Kind, SessionSeen, StoredResponse
from sessions.redis_store import RedisStore
from sessions.store import Write, write
from sessions.valkey_server import EmbeddedValkey
from turns.errors import UnavailableError

SEEN = SessionSeen("o", "s", 5.0, "codex", "m")
RESPONSE_1 = StoredResponse("resp_1", "responses", "m", 2.0, "completed", b"[]", b"{}")


class RecordingTap:
    def __init__(self) -> None:
        self.troubles: list[tuple[str, str]] = []
        self.recoveries = 0
        self.away = False
        self._recovered = asyncio.Event()

    def redis_trouble(self, operation: str, error: str, at: float, *, away: bool) -> None:
        self.away = self.away or away
        self.troubles.append((operation, error))
        self._recovered.clear()

    def redis_recovered(self, seconds: float, at: float) -> None:
        assert seconds >= 0
        self.recoveries += 1
        self.away = False
        self._recovered.set()

    async def recovered(self) -> None:
        async with asyncio.timeout(20):
            await self._recovered.wait()


class Rig:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.server = EmbeddedValkey(directory)
        self.tap = RecordingTap()
        self.store = GuardedStore(RedisStore(self.server.start()), self.tap, longest_probe=0.2)

    def kill(self) -> None:
        os.kill(self.server.pid, signal.SIGKILL)
        self.server.stop()

    def restart(self) -> None:
        self.server = EmbeddedValkey(self.directory)
        self.server.start()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    yield made
    await made.store.close()
    made.server.stop()


async def every_call(store: GuardedStore) -> list[object]:
    async with asyncio.timeout(20):
        return [
            await store.session("o", "s"),
            await store.end_session("o", "s"),
            await store.put(write(LEDGER, "o", "a", b"a", ttl=60)),
            await store.get(LEDGER, "o", "a", "b"),
            await store.delete(LEDGER, "o", "a"),
            await store.append(TURNS, "o", "s", ["t"], ttl=60, keep=9),
            await store.items(TURNS, "o", "s"),
        ]


async def test_while_redis_serves_the_guard_is_not_felt(rig: Rig) -> None:
    assert await every_call(rig.store) == [None, False, True, [b"a", None], 1, True, ["t"]]
    assert (await rig.store.touch_session(SEEN, 60)).turns == 1
    assert (await rig.store.touch_session(SEEN, 60)).turns == 2
    await rig.store.ping()
    assert rig.tap.troubles == []


async def test_a_killed_redis_fails_no_call_and_is_told_once(rig: Rig) -> None:
    await rig.store.put(write(LEDGER, "o", "a", b"kept", ttl=60))
    rig.kill()
    assert await every_call(rig.store) == [None, False, False, [None, None], 0, False, []]
    assert (await rig.store.touch_session(SEEN, 60)).turns == 1
    assert rig.store.away
    assert rig.tap.away
    assert [operation for operation, _ in rig.tap.troubles] == ["session"]
    with pytest.raises(UnavailableError):
        await rig.store.ping()


async def test_a_restarted_redis_is_found_again_with_what_it_kept(rig: Rig) -> None:
    await rig.store.put(write(LEDGER, "o", "a", b"kept", ttl=60))
    for count in range(1, 3):
        rig.kill()
        assert await rig.store.get(LEDGER, "o", "a") == [None]
        rig.restart()
        await rig.tap.recovered()
        assert not rig.store.away
        assert await rig.store.get(LEDGER, "o", "a") == [b"kept"]
        assert (len(rig.tap.troubles), rig.tap.recoveries) == (count, count)


async def test_a_hanging_redis_costs_one_timeout_and_mixes_no_answers_up(rig: Rig) -> None:
    names = [f"k{number}" for number in range(20)]
    await rig.store.put(*(write(LEDGER, "o", name, name.encode(), ttl=60) for name in names))
    os.kill(rig.server.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(20):
            found = await asyncio.gather(*(rig.store.get(LEDGER, "o", name) for name in names))
        assert found == [[None]] * 20
        assert rig.store.away
        assert rig.tap.troubles == [("get", "no answer in 0.25 s")]
    finally:
        os.kill(rig.server.pid, signal.SIGCONT)
    await rig.tap.recovered()
    found = await asyncio.gather(*(rig.store.get(LEDGER, "o", name) for name in names))
    assert found == [[name.encode()] for name in names]


async def test_turns_in_full_flight_survive_a_kill(rig: Rig) -> None:
    async def turn(number: int) -> None:
        seen = SessionSeen("o", f"s{number}", float(number))
        await rig.store.touch_session(seen, 60)
        await rig.store.put(write(LEDGER, "o", f"k{number}", b"x", ttl=60))
        await rig.store.get(LEDGER, "o", f"k{number}")
        if number == 100:
            rig.kill()

    async with asyncio.timeout(60):
        await asyncio.gather(*(turn(number) for number in range(300)))
        assert await rig.store.session("o", "s1") is None
    assert rig.store.away
    assert rig.tap.troubles


async def test_late_answers_among_others_open_nothing() -> None:
    class Uneven(MemoryStore):
        async def session(self, owner: str, key: str) -> None:
            await asyncio.Event().wait()

    tap = RecordingTap()
    store = GuardedStore(Uneven(), tap, timeout=0.05)

    async def others() -> None:
        while not tap.troubles:
            await store.items(TURNS, "o", "s")
            await asyncio.sleep(0)

    async with asyncio.timeout(20):
        assert await asyncio.gather(store.session("o", "s"), others()) == [None, None]
        assert not store.away
        assert await store.session("o", "s") is None
        assert store.away
    await store.close()


async def test_a_loop_that_stood_still_is_no_late_store(rig: Rig) -> None:
    asking = asyncio.ensure_future(rig.store.session("o", "s"))
    await asyncio.sleep(0)
    time.sleep(0.5)  # noqa: ASYNC251 - twice the time-out, in which nothing is read
    assert await asking is None
    assert not rig.tap.troubles
    assert not rig.store.away


async def test_what_a_turn_needs_is_given_longer_to_be_written() -> None:
    class Slow(MemoryStore):
        async def put(self, *writes: Write) -> bool:
            await slow.wait()
            return await super().put(*writes)

    slow, tap = asyncio.Event(), RecordingTap()
    store = GuardedStore(Slow(), tap, timeout=0.05)
    needed = asyncio.ensure_future(store.put(write(RESPONSE, "o", "resp_1", RESPONSE_1, ttl=60)))
    assert not await store.put(write(LEDGER, "o", "a", b"", ttl=60))
    slow.set()
    assert await needed
    assert [operation for operation, _ in tap.troubles] == ["put"]
    await store.close()


async def test_only_a_ping_that_answers_is_a_recovery() -> None:
    class Gone(MemoryStore):
        pings = 0

        async def session(self, owner: str, key: str) -> None:
            raise OSError

        async def ping(self) -> None:
            self.pings += 1
            if self.pings < 4:
                raise OSError

    gone, tap = Gone(), RecordingTap()
    store = GuardedStore(gone, tap, first_probe=0.001)
    assert await store.session("o", "s") is None
    await tap.recovered()
    assert gone.pings == 4
    assert tap.recoveries == 1
    await store.close()


async def test_a_response_to_continue_is_unavailable_and_never_not_found(rig: Rig) -> None:
    await rig.store.put(write(RESPONSE, "o", "resp_1", RESPONSE_1, ttl=60))
    rig.kill()
    for _ in range(2):
        with pytest.raises(UnavailableError, match="again shortly"):
            await rig.store.get(RESPONSE, "o", "resp_1")
    with pytest.raises(UnavailableError):
        await rig.store.delete(RESPONSE, "o", "resp_1")
    await rig.store.put(write(RESPONSE, "o", "resp_2", RESPONSE_1, ttl=60))


async def test_one_bad_record_is_told_and_opens_nothing() -> None:
    memory, tap = MemoryStore(), RecordingTap()
    store = GuardedStore(memory, tap)
    await memory.put(write(Kind("reply", str), "o", "a", "of another version", ttl=60))
    assert await store.get(REPLY, "o", "a") == [None]
    assert not store.away
    assert not tap.away
    assert [operation for operation, _ in tap.troubles] == ["get"]
    with pytest.raises(ValueError, match="more than 0"):
        await store.put(write(LEDGER, "o", "a", b"", ttl=0))


@pytest.mark.parametrize("needed", [False, True])
async def test_one_bad_record_hides_no_other(needed: bool) -> None:
    memory, tap = MemoryStore(), RecordingTap()
    store = GuardedStore(memory, tap)
    one, several = Kind("one", bytes, needed=needed), Kind("several", str, needed=needed)
    await memory.put(
        write(Kind("one", str), "o", "bad", "of another version", ttl=60),
        write(one, "o", "good", b"a", ttl=60),
    )
    await memory.append(several, "o", "s", ["1"], ttl=60, keep=9)
    await memory.append(Kind("several", int), "o", "s", [2], ttl=60, keep=9)
    assert await store.get(one, "o", "bad", "good", "none") == [None, b"a", None]
    assert await store.items(several, "o", "s") == ["1"]
    assert [operation for operation, _ in tap.troubles] == ["get", "items"]
    assert not tap.away


async def test_closing_while_away_ends_the_probe(rig: Rig) -> None:
    rig.kill()
    await rig.store.session("o", "s")
    await rig.store.close()
    assert not rig.store.away
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []
