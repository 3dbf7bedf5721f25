from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prompts.memo import Memo


def test_least_recently_used_leaves_first() -> None:
    memo: Memo[str, int] = Memo(2)
    memo.put("a", 1)
    memo.put("b", 2)
    assert memo.get("a") == 1
    memo.put("c", 3)
    assert (memo.get("a"), memo.get("b"), memo.get("c")) == (1, None, 3)
    assert (memo.hits, memo.misses) == (3, 1)


def test_what_is_too_heavy_is_not_kept() -> None:
    memo: Memo[str, int] = Memo(5)
    memo.put("a", 1, weight=6)
    assert memo.get("a") is None


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 4))))
def test_weight_never_exceeds_the_bound(puts: list[tuple[str, int]]) -> None:
    memo: Memo[str, int] = Memo(7)
    weights: dict[str, int] = {}
    for key, weight in puts:
        memo.put(key, weight, weight=weight)
        weights[key] = weight
        assert memo.get(key) == weight
    assert sum(weights[key] for key in weights if memo.get(key) is not None) <= 7
