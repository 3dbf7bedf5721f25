"""The rows that stand for the stream: the first few, and a fair sample of all."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa

HEAD = 5
SAMPLE = 32


class Rows:
    """`head` are the first rows; `sample` gives every row the same chance (Vitter's algorithm L).

    The next row to take is drawn ahead, so a batch costs nothing when none of its rows is taken,
    and what is taken depends on row numbers alone.
    """

    def __init__(self, seed: int = 0) -> None:
        self.head: list[dict[str, Any]] = []
        self.sample: list[dict[str, Any]] = []
        self._random = random.Random(seed)  # noqa: S311 (a sample, not a secret)
        self._seen = 0
        self._weight = 1.0
        self._next = SAMPLE - 1

    def add(self, batch: Any) -> None:
        rows = batch.num_rows
        if self._seen < HEAD:
            self.head += batch.slice(0, HEAD - self._seen).to_pylist()
        if self._seen < SAMPLE:
            self.sample += batch.slice(0, SAMPLE - self._seen).to_pylist()
        end = self._seen + rows
        if end >= SAMPLE and self._next == SAMPLE - 1:
            self._skip()
        taken: dict[int, int] = {}  # place in the sample -> row of the batch; the last one stays
        while SAMPLE <= self._next < end:
            taken[self._random.randrange(SAMPLE)] = self._next - self._seen
            self._skip()
        if taken:
            kept = batch.take(pa.array(taken.values(), pa.int64())).to_pylist()
            for place, row in zip(taken, kept, strict=True):
                self.sample[place] = row
        self._seen = end

    def _skip(self) -> None:
        self._weight *= math.exp(math.log(self._random.random()) / SAMPLE)
        gap = math.floor(math.log(self._random.random()) / math.log1p(-self._weight))
        self._next += gap + 1
