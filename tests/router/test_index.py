"""The index against a naive model: sets of prefixes, nothing shared, nothing clever."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from router.blocks import chain
from router.index import PrefixIndex
from router.kv import KvCleared, KvRemoved, KvStored

SIZE = 2
NAMES = ["a", "b", "c"]
replicas = st.sampled_from(NAMES)
# Few tokens and short prompts, so that prompts share prefixes and blocks come back.
prompts = st.lists(st.integers(0, 1), min_size=SIZE, max_size=5 * SIZE)


def stored(prompt: list[int], start: int = 0) -> KvStored:
    """The event for the blocks of `prompt` from `start` on; the engine's hashes are its own."""
    theirs = [block ^ 1 for block in chain(prompt, SIZE)]
    ids = prompt[start * SIZE : len(theirs) * SIZE]
    return KvStored(theirs[start:], theirs[start - 1] if start else None, ids, SIZE)


class NaiveIndex:
    def __init__(self) -> None:
        self.now = 0.0
        self.held: dict[str, set[int]] = {}
        self.guessed: dict[int, tuple[str, float, set[int]]] = {}  # bucket -> replica, end, blocks

    def has(self, replica: str, block: int) -> bool:
        return block in self.held[replica] or any(
            replica == who and end > self.now and block in blocks
            for who, end, blocks in self.guessed.values()
        )

    def overlap(self, hashes: list[int]) -> dict[str, int]:
        found = {}
        for replica in self.held:
            depth = 0
            while depth < len(hashes) and self.has(replica, hashes[depth]):
                depth += 1
            if depth:
                found[replica] = depth
        return found

    def settle(self, replica: str, block: int) -> None:
        for who, _, blocks in self.guessed.values():
            if who == replica:
                blocks.discard(block)


class IndexMachine(RuleBasedStateMachine):
    ttl = 10.0

    def __init__(self) -> None:
        super().__init__()
        self.index = PrefixIndex(ttl=self.ttl)
        self.naive = NaiveIndex()
        self.asked: list[list[int]] = []

    @rule(replica=replicas)
    def add(self, replica: str) -> None:
        self.index.add(replica)
        self._forget(replica)
        self.naive.held[replica] = set()

    @rule(replica=replicas)
    def remove(self, replica: str) -> None:
        self.index.remove(replica)
        self._forget(replica)

    def _forget(self, replica: str) -> None:
        self.naive.held.pop(replica, None)
        for bucket, (who, _, _) in list(self.naive.guessed.items()):
            if who == replica:
                del self.naive.guessed[bucket]

    @rule(replica=replicas, prompt=prompts, data=st.data())
    def store(self, replica: str, prompt: list[int], data: Any) -> None:
        start = data.draw(st.integers(0, len(prompt) // SIZE - 1))
        hashes = chain(prompt, SIZE)
        member = replica in self.naive.held
        known = start == 0 or not member or hashes[start - 1] in self.naive.held[replica]
        assert self.index.apply(replica, stored(prompt, start)) is known
        if member and known:
            self.naive.held[replica] |= set(hashes[start:])
            for block in hashes[start:]:
                self.naive.settle(replica, block)

    @rule(replica=replicas, prompt=prompts)
    def evict(self, replica: str, prompt: list[int]) -> None:
        block = chain(prompt, SIZE)[-1]
        assert self.index.apply(replica, KvRemoved([block ^ 1]))
        if block in self.naive.held.get(replica, ()):
            self.naive.held[replica].discard(block)
            self.naive.settle(replica, block)

    @rule(replica=replicas)
    def clear(self, replica: str) -> None:
        assert self.index.apply(replica, KvCleared())
        if replica in self.naive.held:
            self._forget(replica)
            self.naive.held[replica] = set()

    @precondition(lambda self: self.naive.held)
    @rule(prompt=prompts, data=st.data())
    def predict(self, prompt: list[int], data: Any) -> None:
        replica = data.draw(st.sampled_from(sorted(self.naive.held)))
        hashes = chain(prompt, SIZE)
        bucket = self.index.predict(replica, hashes, self.naive.now)
        self.naive.guessed[bucket] = (replica, self.naive.now + self.ttl, set(hashes))

    @precondition(lambda self: self.naive.guessed)
    @rule(data=st.data())
    def retract(self, data: Any) -> None:
        bucket = data.draw(st.sampled_from(sorted(self.naive.guessed)))
        self.index.predictions.retract(bucket)
        del self.naive.guessed[bucket]

    @rule(seconds=st.sampled_from([1.0, 5.0, 20.0]))
    def wait(self, seconds: float) -> None:
        self.naive.now += seconds
        self.index.predictions.expire(self.naive.now)

    @rule(prompt=prompts)
    def touch(self, prompt: list[int]) -> None:
        self.index.touch(chain(prompt, SIZE))

    @rule(prompt=prompts)
    def ask(self, prompt: list[int]) -> None:
        hashes = chain(prompt, SIZE)
        found, solid = self.index.walk(hashes)
        assert found == self.naive.overlap(hashes)
        deepest = max(found.values(), default=0)
        for replica, depth in found.items():
            assert set(hashes[: min(solid, depth)]) <= self.naive.held[replica]
        assert solid <= deepest

    @invariant()
    def nothing_is_kept_for_nobody(self) -> None:
        live = {seat.bit for seat in self.index._seats.values()}
        assert self.index._alive == sum(live)
        if not self.index._leaving:
            assert set(self.index._blocks) == set().union(*self.naive.held.values(), set())

    def teardown(self) -> None:
        self.wait(2 * self.ttl)
        assert len(self.index.predictions) == 0
        for replica in NAMES:
            self.remove(replica)
        self.index.add("last")
        for _ in range(20):
            self.index.apply("last", KvRemoved([]))
        assert len(self.index) == 0


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)


def test_the_bound_holds_and_what_was_touched_stays() -> None:
    index = PrefixIndex(max_blocks=64)
    index.add("a")
    kept = list(range(16))
    index.apply("a", stored(kept))
    for serial in range(200):
        index.apply("a", stored([1000 + serial] * 8))
        index.touch(chain(kept, SIZE))
        assert len(index) <= 64
    assert index.overlap(chain(kept, SIZE)) == {"a": 8}
    assert index.overlap(chain([1000] * 8, SIZE)) == {}


def test_predictions_are_bounded_oldest_first() -> None:
    index = PrefixIndex(max_predicted=8)
    index.add("a")
    for first in range(4):
        index.predict("a", chain([first] * 8, SIZE), 0.0)
    assert len(index.predictions) == 8
    assert index.overlap(chain([0] * 8, SIZE)) == {}
    assert index.overlap(chain([3] * 8, SIZE)) == {"a": 4}


def test_solid_is_as_deep_as_nothing_is_guessed() -> None:
    index, ids = PrefixIndex(), list(range(8))
    index.add("a")
    index.add("b")
    index.apply("a", stored(ids[:6]))
    index.apply("b", stored(ids[:2]))
    assert index.walk(chain(ids, SIZE)) == ({"a": 3, "b": 1}, 3)
    index.predict("b", chain(ids, SIZE)[1:], 0.0)
    assert index.walk(chain(ids, SIZE)) == ({"a": 3, "b": 4}, 1)


def test_a_bucket_from_before_the_engine_spoke_ends_no_later_guess() -> None:
    index, hashes = PrefixIndex(), chain([0] * 4, SIZE)
    index.add("a")
    before = index.predict("a", hashes, 0.0)
    index.apply("a", stored([0] * 4))
    for block in reversed(hashes):
        index.apply("a", KvRemoved([block ^ 1]))
    index.predict("a", hashes, 1.0)
    index.predictions.retract(before)
    assert index.overlap(hashes) == {"a": 2}


def test_an_event_of_odd_length_is_not_guessed_at() -> None:
    index = PrefixIndex()
    index.add("a")
    assert not index.apply("a", KvStored([1, 2], None, [0, 0, 0], SIZE))
    assert len(index) == 0


def test_a_removed_replicas_bit_is_used_again_only_when_swept() -> None:
    index = PrefixIndex()
    index.add("a")
    index.apply("a", stored(list(range(4000))))
    index.remove("a")
    index.add("b")
    assert index.overlap(chain(list(range(8)), SIZE)) == {}
    for _ in range(8):
        index.apply("b", KvRemoved([]))
    index.add("c")
    assert index._seats["c"].bit == 1
    assert index.overlap(chain(list(range(8)), SIZE)) == {}


def test_hashes_of_a_salted_chain_match_only_the_salted_prompt() -> None:
    index = PrefixIndex()
    index.add("a")
    index.apply("a", KvStored([7], None, [1, 2], SIZE, "tenant"))
    assert index.overlap(chain([1, 2], SIZE)) == {}
    assert index.overlap(chain([1, 2], SIZE, "tenant")) == {"a": 1}
