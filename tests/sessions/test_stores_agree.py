"""Memory and Redis are told the same at random: whatever the one answers, so does the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from sessions.records import LEDGER, TURNS, SessionSeen
from sessions.store import Store, write
from sessions.valkey_server import EmbeddedValkey
from tests.sessions.conftest import MemoryRig, RedisRig
from turns.turn import Hints

names = st.sampled_from(["a", "b"])
owners = st.sampled_from(["x", "y"])
ttls = st.sampled_from([30.0, 60.0])
texts = st.text(max_size=3)


sessions = st.builds(
    SessionSeen,
    owner=owners,
    key=names,
    at=st.floats(0, 2e9),
    harness=texts,
    model=texts,
    parent=texts,
    hints=st.builds(
        Hints,
        priority=st.integers(-9, 9),
        tier=st.integers(-9, 9),
        osl=st.none() | st.integers(0, 9),
    ),
)


class Agreement(RuleBasedStateMachine):
    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.memory, self.redis = MemoryRig(), RedisRig(self.url)

    def _same(self, ask: Any) -> None:
        async def both() -> tuple[Any, Any]:
            return await ask(self.memory.store), await ask(self.redis.store)

        one, other = self.loop.run_until_complete(both())
        assert one == other

    @rule(session=sessions, ttl=ttls)
    def touch(self, session: SessionSeen, ttl: float) -> None:
        self._same(lambda store: store.touch_session(session, ttl))

    @rule(owner=owners, key=names)
    def session(self, owner: str, key: str) -> None:
        self._same(lambda store: store.session(owner, key))

    @rule(owner=owners, key=names)
    def end_session(self, owner: str, key: str) -> None:
        self._same(lambda store: store.end_session(owner, key))

    @rule(owner=owners, values=st.dictionaries(names, st.binary(max_size=3)), ttl=ttls)
    def put(self, owner: str, values: dict[str, bytes], ttl: float) -> None:
        writes = [write(LEDGER, owner, name, value, ttl=ttl) for name, value in values.items()]
        self._same(lambda store: store.put(*writes))

    @rule(owner=owners, wanted=st.lists(names, max_size=3), renew=st.none() | ttls)
    def get(self, owner: str, wanted: list[str], renew: float | None) -> None:
        self._same(lambda store: store.get(LEDGER, owner, *wanted, renew=renew))

    @rule(owner=owners, wanted=st.lists(names, max_size=3), kind=st.sampled_from([LEDGER, TURNS]))
    def delete(self, owner: str, wanted: list[str], kind: Any) -> None:
        self._same(lambda store: store.delete(kind, owner, *wanted))

    @rule(
        owner=owners,
        name=names,
        values=st.lists(texts, max_size=3),
        keep=st.integers(1, 4),
        ttl=ttls,
    )
    def append(self, owner: str, name: str, values: list[str], keep: int, ttl: float) -> None:
        async def ask(store: Store) -> None:
            await store.append(TURNS, owner, name, values, ttl=ttl, keep=keep)

        self._same(ask)

    @rule(owner=owners, name=names)
    def items(self, owner: str, name: str) -> None:
        self._same(lambda store: store.items(TURNS, owner, name))

    @rule(seconds=st.sampled_from([20.0, 35.0]))
    def advance(self, seconds: float) -> None:
        self.memory.advance(seconds)
        self.redis.advance(seconds)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.redis.store.close())
        self.redis.close()
        self.loop.close()


@pytest.mark.timeout(120)
def test_memory_and_redis_agree(valkey: EmbeddedValkey) -> None:
    case = type("Agreement", (Agreement,), {"url": valkey.url})
    run_state_machine_as_test(
        case, settings=settings(max_examples=60, stateful_step_count=30, deadline=None)
    )
