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

from toolruns.arrays import listed
from toolruns.synopsis.hyperloglog import HyperLogLog

EXACT_VALUES = 4_096
STRIDE = 32
_NEARLY_UNIQUE = 0.5
_LG_MAP = 11


class DistinctValues:
    def __init__(self, exact: int = EXACT_VALUES) -> None:
        self._limit = exact
        self._counts: dict[Any, int] = {}
        self._rows = 0
        self._sketch: HyperLogLog | None = None
        self._frequent: Any = None

    @property
    def exact(self) -> bool:
        return self._sketch is None

    def add(self, array: Any) -> Any:
        """Take an array without nulls; gives an array of the same values, without most repeats."""
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
        rows = pa.array(np.arange(offset, len(array), STRIDE, dtype=np.int32))
        for value, count in _pairs(pc.value_counts(array.take(rows))):
            self._frequent.update(value, count)

    def count(self) -> int:
        return len(self._counts) if self._sketch is None else round(self._sketch.estimate())

    def top(self, k: int) -> list[tuple[Any, int]]:
        """The `k` most frequent values with their counts, [] when no value repeats."""
        if self._sketch is None:
            if len(self._counts) == self._rows:
                return []
            ranked = sorted(self._counts.items(), key=lambda item: (-item[1], str(item[0])))
            return ranked[:k]
        if self._frequent is None:
            return []
        found = self._frequent.get_frequent_items(
            datasketches.frequent_items_error_type.NO_FALSE_POSITIVES
        )
        return [(value, estimate * STRIDE) for value, estimate, _, _ in found[:k]]


def _pairs(counted: Any) -> Iterator[tuple[Any, int]]:
    """Values and counts as Python objects."""
    return zip(listed(counted.field("values")), listed(counted.field("counts")), strict=True)
