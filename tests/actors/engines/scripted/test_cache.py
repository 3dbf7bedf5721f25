from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.engines.engine import KvCleared, KvRemoved, KvStored
from actors.engines.scripted.cache import PrefixCache, extend, root

SIZE = 2


def chain(tokens: list[int], salt: str = "") -> list[int]:
    return extend([], tokens, len(tokens), SIZE, salt)


def fill(cache: PrefixCache, tokens: list[int], salt: str = "") -> list[int] | None:
    """What a turn does: hit, take, store. None if there was no room for it."""
    names = chain(tokens, salt)
    hits = cache.match(names, len(names))
    cache.hold(names[:hits])
    if not cache.take(len(names) - hits):
        cache.release(names[:hits], 0)
        return None
    parent = names[hits - 1] if hits else None
    cache.store(parent, names[hits:], tokens[hits * SIZE :], salt)
    return names


def replay(cache: PrefixCache, content: dict[int, int | None]) -> None:
    """Apply the pending events to `content`, a map of block to parent, checking each."""
    for event in cache.take_events():
        match event:
            case KvStored(block_hashes=names, parent=parent, token_ids=ids, salt=salt):
                assert len(ids) == len(names) * SIZE
                for at, name in enumerate(names):
                    assert name not in content
                    assert parent is None or parent in content
                    seed = root(salt) if parent is None else parent
                    block = ids[at * SIZE : (at + 1) * SIZE]
                    assert extend([seed], [0] * SIZE + block, SIZE * 2, SIZE)[-1] == name
                    content[name] = parent
                    parent = name
            case KvRemoved(block_hashes=names):
                for name in names:
                    del content[name]
            case KvCleared():
                content.clear()


def test_a_chain_names_whole_blocks_by_content_parent_and_salt() -> None:
    assert len(chain([1, 2, 3])) == 1
    assert chain([1, 2, 3, 4])[0] == chain([1, 2, 9, 9])[0]
    assert chain([9, 9, 3, 4])[1] != chain([1, 2, 3, 4])[1]
    assert chain([1, 2], "tenant") != chain([1, 2])


def test_a_chain_grows_as_if_made_at_once() -> None:
    tokens = list(range(11))
    grown: list[int] = []
    for stop in range(len(tokens) + 1):
        extend(grown, tokens, stop, SIZE, "s")
    assert grown == chain(tokens, "s")


def test_held_blocks_are_never_evicted() -> None:
    cache = PrefixCache(2, SIZE)
    held = fill(cache, [1, 2, 3, 4])
    assert held is not None
    assert not cache.take(1)
    assert cache.resident() == set(held)


def test_the_end_of_a_prefix_goes_before_its_beginning() -> None:
    cache = PrefixCache(3, SIZE)
    names = fill(cache, [1, 2, 3, 4, 5, 6])
    assert names is not None
    cache.release(names, 0)
    assert cache.take(1)
    assert cache.match(names, 3) == 2


def test_the_least_recently_used_prefix_goes_first() -> None:
    cache = PrefixCache(2, SIZE)
    for tokens in ([1, 2], [3, 4], [1, 2]):
        names = fill(cache, tokens)
        assert names is not None
        cache.release(names, 0)
    assert cache.take(1)
    assert cache.resident() == set(chain([1, 2]))


def test_a_block_stored_twice_is_shared() -> None:
    cache = PrefixCache(4, SIZE)
    names = chain([1, 2])
    assert cache.take(2)
    cache.store(None, names, [1, 2], "")
    cache.store(None, names, [1, 2], "")
    assert (cache.used, len(cache.take_events())) == (1, 1)
    cache.release(names, 0)
    assert cache.used == 1
    cache.release(names, 0)
    assert cache.used == 0


def test_clear_waits_for_the_last_holder() -> None:
    cache = PrefixCache(2, SIZE)
    names = fill(cache, [1, 2])
    assert names is not None
    assert not cache.clear()
    cache.release(names, 0)
    assert cache.clear()
    assert not cache.resident()


@pytest.mark.parametrize(("blocks", "size"), [(0, 16), (16, 0)])
def test_an_empty_cache_is_refused(blocks: int, size: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        PrefixCache(blocks, size)


prompts = st.lists(st.integers(0, 2), min_size=SIZE, max_size=10)


@settings(max_examples=150, deadline=None)
@given(
    capacity=st.integers(1, 6),
    acts=st.lists(
        st.one_of(
            st.tuples(st.just("fill"), prompts, st.sampled_from(["", "salt"])),
            st.tuples(st.just("release"), st.integers(0, 5), st.just("")),
            st.tuples(st.just("clear"), st.just(0), st.just("")),
        ),
        max_size=25,
    ),
)
def test_laws_hold_after_every_act(
    capacity: int, acts: list[tuple[str, list[int] | int, str]]
) -> None:
    cache = PrefixCache(capacity, SIZE)
    held: list[list[int]] = []
    content: dict[int, int | None] = {}
    for act, what, salt in acts:
        if isinstance(what, list):
            names = fill(cache, what, salt)
            if names is not None:
                held.append(names)
        elif act == "release" and held:
            cache.release(held.pop(what % len(held)), 0)
        elif act == "clear":
            cache.clear()
        replay(cache, content)
        # Never more than capacity; what is held stays; the events tell the whole content.
        assert cache.resident() == set(content)
        assert len(cache.resident()) <= capacity
        assert {name for names in held for name in names} <= cache.resident()
        assert cache.used == len({name for names in held for name in names})
        # Closed under "parent of": whatever is resident can be hit as a prefix.
        assert all(parent is None or parent in content for parent in content.values())
