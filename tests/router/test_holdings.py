"""What a replica tells in our names is what a router works out of the engine's own events."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from router.blocks import chain
from router.holdings import Holdings
from router.index import PrefixIndex
from router.kv import KvCleared, KvEvent, KvHeld, KvRemoved, KvStored

IDS = list(range(12))
HASHES = chain(IDS, 4)


def test_blocks_are_told_by_our_names() -> None:
    held = Holdings()
    assert held.take([KvStored([11, 12], None, IDS[:8], 4)]) == [KvHeld([11, 12], HASHES[:2])]
    assert held.take([KvStored([13], 12, IDS[8:], 4)]) == [KvHeld([13], HASHES[2:])]
    assert held.ours == {11: HASHES[0], 12: HASHES[1], 13: HASHES[2]}
    assert held.take([KvRemoved([12, 99])]) == [KvRemoved([12])]
    assert held.take([KvCleared()]) == [KvCleared()]
    assert held.ours == {}


def test_a_block_without_a_known_parent_is_left_out_and_counted() -> None:
    held = Holdings()
    assert held.take([KvStored([13], 12, IDS[8:], 4), KvStored([14], 13, IDS[8:], 4)]) == []
    assert held.take([KvRemoved([13])]) == []
    assert (held.ours, held.orphans) == ({}, 2)


def test_salt_lora_and_images_separate() -> None:
    held, extras = Holdings(), ["", "cat@0", ""]
    held.take(
        [
            KvStored([1, 2, 3], None, IDS, 4),
            KvStored([4, 5, 6], None, IDS, 4, "tenant"),
            KvStored([7, 8, 9], None, IDS, 4, "", "sql"),
            KvStored([10, 11, 12], None, IDS, 4, "", "", extras),
        ]
    )
    plain, salted, tuned, pictured = (
        [held.ours[n] for n in range(at, at + 3)] for at in (1, 4, 7, 10)
    )
    assert plain == HASHES
    assert salted == chain(IDS, 4, "tenant")
    assert tuned == chain(IDS, 4, lora="sql")
    assert pictured == chain(IDS, 4, extras=extras)
    assert pictured[0] == plain[0]
    assert len({plain[1], salted[1], tuned[1], pictured[1]}) == 4
    assert len({plain[2], salted[2], tuned[2], pictured[2]}) == 4


def test_parts_are_all_of_it() -> None:
    held = Holdings()
    assert held.parts(2) == [{}]
    held.take([KvStored([11, 12, 13], None, IDS, 4)])
    parts = held.parts(2)
    assert [len(part) for part in parts] == [2, 1]
    assert parts[0] | parts[1] == held.ours


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from("srpc"), st.integers(0, 5), st.integers(1, 3))))
def test_an_index_fed_either_way_is_the_same(acts: list[tuple[str, int, int]]) -> None:
    direct, through, held = PrefixIndex(), PrefixIndex(), Holdings()
    direct.add("a")
    through.add("a")
    for kind, prompt, blocks in acts:
        ids = [prompt, *range(blocks * 4 - 1)]
        names = [prompt * 10 + n for n in range(blocks)]
        event: KvEvent
        match kind:
            case "s":
                event = KvStored(names, None, ids, 4)
            case "r":
                event = KvRemoved(names[-1:])
            case "p":
                event = KvStored([names[-1] + 5], names[-1], ids[-4:], 4)
            case _:
                event = KvCleared()
        direct.apply("a", event)
        for told in held.take([event]):
            assert through.apply("a", told)
    assert through.holdings("a") == direct.holdings("a") == held.ours
