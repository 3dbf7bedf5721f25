from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from router.blocks import chain, extend, extras_of, follow, root

tokens = st.lists(st.integers(0, 2**32 - 1), max_size=70)
sizes = st.integers(1, 17)
salts = st.sampled_from(["", "tenant-a", "lora:x"])


def naive(ids: list[int], size: int, salt: str) -> list[int]:
    parent, hashes = root(salt), []
    for end in range(size, len(ids) + 1, size):
        block = b"".join(token.to_bytes(4, "little") for token in ids[end - size : end])
        parent = xxh3_64_intdigest(block, parent)
        hashes.append(parent)
    return hashes


@given(tokens, sizes, salts)
def test_chain_hashes_each_whole_block_with_its_parent(
    ids: list[int], size: int, salt: str
) -> None:
    assert chain(ids, size, salt) == naive(ids, size, salt)


@given(tokens, tokens, sizes, salts)
def test_extending_a_prefix_equals_hashing_the_whole(
    ids: list[int], more: list[int], size: int, salt: str
) -> None:
    assert extend(chain(ids, size, salt), ids + more, size, salt) == chain(ids + more, size, salt)


@given(tokens, sizes, st.data())
def test_a_changed_token_changes_every_hash_from_its_block_on(
    ids: list[int], size: int, data: st.DataObject
) -> None:
    before = chain(ids, size)
    if not before:
        return
    place = data.draw(st.integers(0, len(before) * size - 1))
    after = chain([*ids[:place], (ids[place] + 1) % 2**32, *ids[place + 1 :]], size)
    same = place // size
    assert after[:same] == before[:same]
    assert not set(after[same:]) & set(before)


def test_salts_share_nothing() -> None:
    ids = list(range(64))
    assert not set(chain(ids, 16)) & set(chain(ids, 16, "tenant-a"))


def test_hashes_are_the_same_in_every_process_and_version() -> None:
    assert chain([1, 2, 3, 4, 5, 6, 7], 3) == [7764052002911021640, 7780824552368282791]


def test_arrays_are_taken_as_lists_are() -> None:
    ids = list(range(40))
    assert chain(array("I", ids), 16) == chain(ids, 16)
    assert chain(array("Q", ids), 16) == chain(ids, 16)


def test_follow_goes_on_where_a_block_ended() -> None:
    whole = chain(list(range(32)), 16)
    assert follow(whole[0], list(range(16, 32)), 16) == whole[1:]


@pytest.mark.parametrize(
    ("ids", "size", "error"),
    [
        pytest.param([1], 0, ValueError, id="block of nothing"),
        pytest.param([-1], 1, OverflowError, id="negative id"),
        pytest.param([2**32], 1, OverflowError, id="id over u32"),
    ],
)
def test_bad_input_is_refused(ids: list[int], size: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        chain(ids, size)


def test_extend_refuses_hashes_of_more_than_there_is() -> None:
    with pytest.raises(ValueError, match="2 blocks of 16"):
        extend([1, 2], [0] * 31, 16)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=4), st.integers(1, 5))
def test_a_block_depends_on_the_pictures_that_reach_into_it(
    gaps: list[tuple[int, int]], size: int
) -> None:
    """As vLLM keys a block: of each picture in it the name, and its start from the block's."""
    spans, end = [], 0
    for number, (gap, length) in enumerate(gaps):
        spans.append((f"p{number}", end + gap, length))
        end += gap + length
    blocks = end // size + 1
    found = extras_of(spans, blocks, size)
    if not spans:
        assert found is None
        return
    expected = [
        " ".join(
            f"{name}@{start - at}"
            for name, start, length in spans
            if start < at + size and at < start + length
        )
        for at in range(0, blocks * size, size)
    ]
    assert found == expected


def test_two_pictures_part_from_the_block_in_which_they_begin() -> None:
    ids = [7] * 24
    cat, dog, none = (
        chain(ids, 4, extras=extras_of(spans, 6, 4))
        for spans in ([("cat", 9, 5)], [("dog", 9, 5)], [])
    )
    assert cat[:2] == dog[:2] == none[:2]
    assert not set(cat[2:]) & {*dog[2:], *none[2:]}
