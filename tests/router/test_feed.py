from __future__ import annotations

import pytest

from router.blocks import chain
from router.feed import Feed
from router.index import PrefixIndex
from router.kv import KvCleared, KvRemoved, KvStored

IDS = list(range(12))
HASHES = chain(IDS, 4)
FIRST = KvStored([11, 12], None, IDS[:8], 4)
THIRD = KvStored([13], 12, IDS[8:], 4)


@pytest.fixture
def feed() -> Feed:
    feed = Feed(PrefixIndex())
    feed.join("a", 4)
    return feed


def test_numbered_batches_build_the_view(feed: Feed) -> None:
    assert feed.take("a", [FIRST], 5)
    assert feed.take("a", [THIRD], 6)
    assert feed.index.overlap(HASHES) == {"a": 3}


def test_a_batch_heard_before_is_skipped(feed: Feed) -> None:
    feed.take("a", [FIRST], 5)
    feed.take("a", [KvRemoved([12])], 6)
    assert feed.take("a", [FIRST], 5)
    assert feed.index.overlap(HASHES) == {"a": 1}


def test_a_gap_takes_all_credit_until_resync(feed: Feed) -> None:
    feed.take("a", [FIRST], 5)
    assert not feed.take("a", [THIRD], 8)
    assert feed.lost == {"a"}
    assert feed.gaps == 1
    assert feed.index.overlap(HASHES) == {}
    assert feed.resync("a", [FIRST, THIRD], 8)
    assert feed.index.overlap(HASHES) == {"a": 3}
    assert feed.take("a", [KvRemoved([13])], 9)
    assert feed.index.overlap(HASHES) == {"a": 2}


def test_a_lost_replica_keeps_gaining_what_is_sure(feed: Feed) -> None:
    feed.take("a", [], 5)
    feed.take("a", [], 8)
    assert not feed.take("a", [FIRST], 9)
    assert feed.index.overlap(HASHES) == {"a": 2}


def test_an_unknown_parent_is_a_gap_counted_once(feed: Feed) -> None:
    assert not feed.take("a", [THIRD, THIRD])
    assert not feed.take("a", [THIRD])
    assert feed.gaps == 1
    assert feed.index.overlap(HASHES) == {}


def test_a_new_life_of_a_replica_starts_its_numbers_anew(feed: Feed) -> None:
    feed.take("a", [FIRST], 5)
    feed.join("a", 4)
    assert feed.index.overlap(HASHES) == {}
    assert feed.take("a", [FIRST], 1)


def test_cleared_forgets_all(feed: Feed) -> None:
    feed.take("a", [FIRST, KvCleared()])
    assert feed.index.overlap(HASHES) == {}


def test_strangers_and_those_who_left_are_not_listened_to(feed: Feed) -> None:
    feed.leave("a")
    assert feed.take("a", [FIRST], 1)
    assert feed.resync("b", [FIRST], 1)
    assert feed.index.overlap(HASHES) == {}
    assert not feed.lost


def test_a_report_ahead_of_what_was_heard_asks_for_a_snapshot(feed: Feed) -> None:
    feed.take("a", [FIRST], 5)
    assert feed.told("a", 5)
    assert not feed.told("a", 6)
    assert feed.index.overlap(HASHES) == {}
    assert (feed.lost, feed.gaps) == ({"a"}, 1)
    assert not feed.told("a", 6)
    assert feed.gaps == 1
    feed.join("a", 4)
    assert not feed.told("a", 6)  # a router that knows nothing yet
    assert feed.told("a", -1)  # the replica has said nothing yet
    assert feed.told("stranger", 9)


def test_a_snapshot_comes_in_parts_and_ends_the_loss(feed: Feed) -> None:
    feed.take("a", [FIRST], 5)
    feed.take("a", [], 8)
    feed.restock("a", {11: HASHES[0]}, 9, first=True, last=False)
    assert feed.lost == {"a"}
    feed.restock("a", {12: HASHES[1]}, 9, first=False, last=True)
    assert feed.index.overlap(HASHES) == {"a": 2}
    assert feed.lost == set()
    assert feed.take("a", [KvRemoved([12])], 10)
    assert feed.index.overlap(HASHES) == {"a": 1}
    feed.restock("a", {}, 11, first=True, last=True)
    assert feed.index.overlap(HASHES) == {}
    assert feed.restock("stranger", {1: 1}, 1, first=True, last=True)


def test_block_sizes_must_agree(feed: Feed) -> None:
    with pytest.raises(ValueError, match="one block size"):
        feed.join("b", 16)
    with pytest.raises(ValueError, match="blocks of 2"):
        feed.take("a", [KvStored([1], None, [0, 0], 2)])
    feed.join("a", 16)  # alone, a new life may differ
