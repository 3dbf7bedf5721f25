"""Aggregates of a predicate: at every row, the value over all rows up to it.

Each takes a piece of the stream and gives one value per row of the piece; what must be carried to
the next piece is O(1), for `distinct` O(values) up to `EXACT_DISTINCT` and a sketch above it. Sums
run strictly from left to right, so a value does not depend on how the stream was cut.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolruns.arrays import Floats, kind_of, listed, numbers
from toolruns.predicate.rowwise import Test
from toolruns.synopsis.hyperloglog import HyperLogLog

EXACT_DISTINCT = 65_536


class Prefix(Protocol):
    """`now` is the value after all rows so far; `spread` the relative error it may carry."""

    spread: float

    @property
    def now(self) -> Any: ...

    def over(self, piece: Any) -> Any:
        """One value per row of `piece`."""
        ...


class Count:
    spread = 0.0

    def __init__(self) -> None:
        self.now = 0.0

    def over(self, piece: Any) -> Floats:
        rows = np.arange(1, piece.num_rows + 1, dtype=np.float64) + self.now
        self.now += piece.num_rows
        return rows


class CountIf:
    spread = 0.0

    def __init__(self, test: Test) -> None:
        self._test = test
        self.now = 0.0

    def over(self, piece: Any) -> Floats:
        rows: Floats = np.cumsum(self._test(piece), dtype=np.float64) + self.now
        self.now = float(rows[-1])
        return rows


def column_of(piece: Any, name: str) -> Any:
    """The column, all null where the piece lacks it: a stream's records need not be alike."""
    index = piece.schema.get_field_index(name)
    return piece.column(index) if index >= 0 else pa.nulls(piece.num_rows, pa.float64())


class Extreme:
    """`min` and `max`; NaN (text: None) until there is a value."""

    spread = 0.0

    def __init__(self, column: str, *, text: bool, greatest: bool) -> None:
        self._column = column
        self._text = text
        self._greatest = greatest
        self.now: Any = None if text else math.nan

    def over(self, piece: Any) -> Any:
        column = column_of(piece, self._column)
        if self._text:
            return self._texts(column.to_pylist())
        keep = np.fmax if self._greatest else np.fmin
        rows = keep.accumulate(np.concatenate(([self.now], numbers(column))))[1:]
        self.now = float(rows[-1])
        return rows

    def _texts(self, values: list[str | None]) -> Any:
        rows = np.empty(len(values), object)
        for row, value in enumerate(values):
            if value is not None and (
                self.now is None or (value > self.now if self._greatest else value < self.now)
            ):
                self.now = value
            rows[row] = self.now
        return rows


class Sum:
    """`sum` and `avg` over the values that are not null; NaN until there is one."""

    spread = 0.0

    def __init__(self, column: str, *, mean: bool) -> None:
        self._column = column
        self._mean = mean
        self._total = 0.0
        self._seen = 0.0
        self.now = math.nan

    def over(self, piece: Any) -> Floats:
        values = numbers(column_of(piece, self._column))
        known = ~np.isnan(values)
        totals = np.add.accumulate(np.concatenate(([self._total], np.where(known, values, 0.0))))[
            1:
        ]
        seen = np.cumsum(known, dtype=np.float64) + self._seen
        self._total, self._seen = float(totals[-1]), float(seen[-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            rows: Floats = totals / seen if self._mean else np.where(seen > 0, totals, np.nan)
        self.now = float(rows[-1])
        return rows


class Nulls:
    spread = 0.0

    def __init__(self, column: str, *, rate: bool) -> None:
        self._column = column
        self._rate = rate
        self._nulls = 0.0
        self._rows = 0
        self.now = math.nan if rate else 0.0

    def over(self, piece: Any) -> Floats:
        missing = column_of(piece, self._column).is_null().to_numpy(zero_copy_only=False)
        rows: Floats = np.cumsum(missing, dtype=np.float64) + self._nulls
        self._nulls = float(rows[-1])
        if self._rate:
            rows = rows / (np.arange(1, piece.num_rows + 1) + self._rows)
        self._rows += piece.num_rows
        self.now = float(rows[-1])
        return rows


class Distinct:
    """Values seen, nulls apart: exact up to `EXACT_DISTINCT`, an estimate above it.

    The estimate moves only at the end of a piece and never falls.
    """

    def __init__(self, column: str, exact: int = EXACT_DISTINCT) -> None:
        self._column = column
        self._exact = exact
        self._values: set[Any] = set()
        self._sketch: HyperLogLog | None = None
        self.spread = 0.0
        self.now = 0.0

    def over(self, piece: Any) -> Floats:
        column = column_of(piece, self._column)
        if self._sketch is not None:
            return self._estimates(column)
        coded = pc.dictionary_encode(column)
        codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
        # Codes are given in order of appearance: a new running maximum is a first appearance.
        running = np.maximum.accumulate(np.concatenate(([-1], codes)))
        first = running[1:] > running[:-1]
        words = listed(coded.dictionary)
        fresh = np.fromiter((word not in self._values for word in words), bool, len(words))
        rows: Floats = np.zeros(len(codes))
        rows[first] = fresh
        rows = np.cumsum(rows) + self.now
        self.now = float(rows[-1]) if len(rows) else self.now
        self._values.update(words)
        if len(self._values) > self._exact:
            self._become_sketch(column.type)
        return rows

    def _become_sketch(self, type_: Any) -> None:
        self._sketch = HyperLogLog()
        self._sketch.add(pa.array(list(self._values), type_))
        self._values.clear()
        self.spread = 2 * HyperLogLog.ERROR

    def _estimates(self, column: Any) -> Floats:
        if self._sketch is None:
            raise AssertionError
        self._sketch.add(column)
        rows = np.full(len(column), self.now)
        self.now = max(self.now, self._sketch.estimate())
        rows[-1] = self.now
        return rows


def extreme_is_text(type_: Any) -> bool:
    return kind_of(type_) in {"text", "other"}
