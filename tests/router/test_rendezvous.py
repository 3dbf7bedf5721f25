from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.rendezvous import rendezvous

keys = st.one_of(st.text(), st.integers(0, 2**64 - 1))
names = st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True)


@given(keys, names, st.randoms())
def test_the_order_of_replicas_does_not_matter(
    key: str | int, names: list[str], rng: random.Random
) -> None:
    shuffled = names[:]
    rng.shuffle(shuffled)
    assert rendezvous(key, shuffled) == rendezvous(key, names)


@given(keys, names)
def test_a_replica_that_leaves_moves_only_its_own_keys(key: str | int, names: list[str]) -> None:
    home = rendezvous(key, names)
    for gone in names:
        rest = [name for name in names if name != gone]
        if rest:
            assert (rendezvous(key, rest) == home) is (gone != home)


def test_keys_spread() -> None:
    homes = Counter(rendezvous(key, ["a", "b", "c", "d"]) for key in range(4000))
    assert all(850 < count < 1150 for count in homes.values())


def test_no_replica_is_an_error() -> None:
    with pytest.raises(ValueError, match="no replica"):
        rendezvous("key", [])
