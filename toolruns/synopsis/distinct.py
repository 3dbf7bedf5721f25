"""Distinct values of a column, and the most frequent ones.

Exact with counts up to `EXACT_VALUES` values; beyond that the number is a HyperLogLog estimate, and
the top values come from a frequent-items sketch fed with one row in `STRIDE`, unless the column
was nearly unique until then: a list of unrepeated values tells nobody anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolruns.arrays import bare, listed
from toolruns.synopsis.hyperloglog import HyperLogLog

EXACT_VALUES = 4_096
STRIDE = 32
DRAWN = 2_048
"""Drawn rows that are counted at once: the sketch takes one value at a time."""
_NEARLY_UNIQUE = 0.5
_LG_MAP = 11


class DistinctValues:
    """`add` takes arrays of one type. Times are counted as the integers that Arrow keeps: to make
    Python's objects of them costs microseconds each.
    """

    def __init__(self, exact: int = EXACT_VALUES) -> None:
        self._limit = exact
        self._counts: dict[Any, int] = {}
        self._rows = 0
        self._sketch: HyperLogLog | None = None
        self._frequent: Any = None
        self._times: Any = None
        self._drawn: list[Any] = []
        self._drawn_rows = 0

    @property
    def exact(self) -> bool:
        return self._sketch is None

    def add(self, array: Any) -> Any:
        """Take an array without nulls; gives an array of the same values, without most repeats."""
        if pa.types.is_temporal(array.type) and len(array):
            self._times = array.type
            return self.add(pa.array(bare(array))).view(self._times)
        offset = -self._rows % STRIDE
        self._rows += len(array)
        if self._sketch is not None:
            self._sketch.add(array)
            if self._frequent is not None:
                self._count_some(array, offset)
            return array
        counted = pc.value_counts(array)
        counts, values = self._counts, counted.field("values")
        for value, count in _pairs(counted):
            counts[value] = counts.get(value, 0) + count
        if len(counts) > self._limit:
            self._overflow(array.type)
        return values

    def _overflow(self, type_: Any) -> None:
        self._sketch = HyperLogLog()
        self._sketch.add(pa.array(list(self._counts), type_))
        if len(self._counts) < _NEARLY_UNIQUE * self._rows:
            self._frequent = datasketches.frequent_items_sketch(_LG_MAP)
            for value, count in self._counts.items():
                if count >= STRIDE:
                    self._frequent.update(value, count // STRIDE)
        self._counts = {}

    def _count_some(self, array: Any, offset: int) -> None:
        rows = array.take(pa.array(np.arange(offset, len(array), STRIDE, dtype=np.int32)))
        self._drawn.append(rows)
        self._drawn_rows += len(rows)
        if self._drawn_rows >= DRAWN:
            self._count_drawn()

    def _count_drawn(self) -> None:
        drawn = pa.chunked_array(self._drawn).combine_chunks()
        self._drawn, self._drawn_rows = [], 0
        for value, count in _pairs(pc.value_counts(drawn)):
            self._frequent.update(value, count)

    def count(self) -> int:
        return len(self._counts) if self._sketch is None else round(self._sketch.estimate())

    def top(self, k: int) -> list[tuple[Any, int]]:
        """The `k` most frequent values with their counts, [] when no value repeats."""
        if self._sketch is None:
            if len(self._counts) == self._rows:
                return []
            ranked = sorted(self._counts.items(), key=lambda item: (-item[1], str(item[0])))
            return self._named(ranked[:k])
        if self._frequent is None:
            return []
        if self._drawn:
            self._count_drawn()
        found = self._frequent.get_frequent_items(
            datasketches.frequent_items_error_type.NO_FALSE_POSITIVES
        )
        return self._named([(value, estimate * STRIDE) for value, estimate, _, _ in found[:k]])

    def _named(self, found: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        """The values as those of the column again."""
        if self._times is None:
            return found
        width = pa.int32() if self._times.bit_width == pa.int32().bit_width else pa.int64()
        values = pa.array([value for value, _ in found], width).view(self._times).to_pylist()
        return [(value, count) for value, (_, count) in zip(values, found, strict=True)]


def _pairs(counted: Any) -> Iterator[tuple[Any, int]]:
    """Values and counts as Python objects."""
    return zip(listed(counted.field("values")), listed(counted.field("counts")), strict=True)
