from __future__ import annotations

import collections

import numpy as np
import pytest

from toolruns.synopsis.draws import Draws


def drawn(sizes, seed=0):
    draws, rows, at = Draws(16, np.random.default_rng(seed)), [], 0
    for size in sizes:
        rows += (draws.rows(size) + at).tolist()
        at += size
    return rows


@pytest.mark.parametrize("size", [1, 7, 16, 20, 1600])
def test_one_of_each_sixteen_whatever_the_pieces_are(size):
    rows = drawn([size] * (1600 // size) + [1600 % size])
    assert collections.Counter(row // 16 for row in rows) == dict.fromkeys(range(100), 1)
    assert rows == sorted(rows)


def test_every_row_has_the_same_chance():
    taken = collections.Counter(row for seed in range(1600) for row in drawn([20, 12], seed))
    assert set(taken) == set(range(32))
    assert max(taken.values()) < 150
    assert min(taken.values()) > 60
