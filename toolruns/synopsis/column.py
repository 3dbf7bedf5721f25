"""The running summary of one column."""

from __future__ import annotations

from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolruns.arrays import Floats, Kind, bare, kind_of, numbers
from toolruns.synopsis.convergence import Convergence
from toolruns.synopsis.distinct import DistinctValues
from toolruns.synopsis.draws import Draws
from toolruns.synopsis.order import Order

TOP = 5
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
THIN_AFTER = 32_768
THIN_BY = 16


class ColumnSummary:
    """`detail` columns have distinct and top values, `quantiles` ones KLL, `watched` a verdict.

    Nulls, minimum and maximum are kept for every column, and are exact.
    """

    def __init__(self, name: str, type_: Any, *, seed: int = 0) -> None:
        self.name = name
        self.type = str(type_)
        self.mixed = 0
        self._arrow = type_
        self._float = pa.types.is_floating(type_)
        self.kind: Kind = kind_of(type_)
        self.rows = 0
        self.nulls = 0
        self.low: Any = None
        self.high: Any = None
        self.order = Order()
        self.distinct: DistinctValues | None = None
        self.watch: Convergence | None = None
        self._quantiles: Any = None
        self._draws: Draws | None = None
        self._rng = np.random.default_rng(seed)
        self._seed = seed

    def keep_detail(self) -> None:
        self.distinct = self.distinct or DistinctValues()

    def keep_quantiles(self) -> None:
        self._quantiles = datasketches.kll_doubles_sketch(200)

    @property
    def has_quantiles(self) -> bool:
        return self._quantiles is not None

    def keep_watch(self) -> None:
        self.keep_detail()
        numeric = self.kind in {"number", "time"}
        self.watch = Convergence(numeric=numeric, mean=self.kind == "number", seed=self._seed)

    def add(self, array: Any, window: int) -> None:
        """Take the column's part of a piece that lies inside one window of `window` rows.

        Values that cannot become the type that the column began with are counted as `mixed`.
        """
        self.rows += len(array)
        if array.type != self._arrow:
            try:
                array = array.cast(self._arrow)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                self.mixed += len(array)
                return
        if array.null_count:
            self.nulls += array.null_count
            array = array.drop_null()
        if not len(array):
            return
        self.order.add(array)
        self._extend(array if self.distinct is None else self.distinct.add(array))
        if self._quantiles is not None or self.watch is not None:
            self._measure(array, window)

    def check(self, rows: int) -> None:
        if self.watch is not None and self.distinct is not None:
            count = self.distinct.count()
            self.watch.check(rows, count, monotone=self.order.monotone)

    def add_missing(self, rows: int) -> None:
        """The piece's records had no such column: all null."""
        self.rows += rows
        self.nulls += rows

    def _extend(self, array: Any) -> None:
        if self.kind == "other":
            return
        low, high = _extremes(array)
        self.low = low if self.low is None or low < self.low else self.low
        self.high = high if self.high is None or high > self.high else self.high

    def _measure(self, array: Any, window: int) -> None:
        if self.kind not in {"number", "time"}:
            return
        values = numbers(array)
        if self._float and np.isnan(values).any():
            values = values[~np.isnan(values)]
        if self._quantiles is not None and len(values):
            self._rank(values)
        if self.watch is not None:
            self.watch.add(values, window)

    def _rank(self, values: Floats) -> None:
        drawn = self._drawn(values) if self.rows > THIN_AFTER else values
        if len(drawn):
            self._quantiles.update(np.array(drawn, copy=True))

    def _drawn(self, values: Floats) -> Floats:
        """One value drawn of each `THIN_BY` in a row, however they are cut into pieces: once there
        are many this adds less error than the sketch has itself.
        """
        if self._draws is None:
            self._draws = Draws(THIN_BY, self._rng)
            ranks = np.linspace(0, 1, max(2, self._quantiles.n // THIN_BY))
            past = np.array(self._quantiles.get_quantiles(ranks.tolist()))
            self._quantiles = datasketches.kll_doubles_sketch(200)
            self._quantiles.update(past)
        drawn: Floats = values[self._draws.rows(len(values))]
        return drawn

    def quantiles(self) -> dict[str, float]:
        """Values at the 5, 25, 50, 75 and 95 % ranks (rank error at most 2 %), {} if not kept."""
        if self._quantiles is None or self._quantiles.is_empty():
            return {}
        values = self._quantiles.get_quantiles(list(QUANTILES))
        return {f"p{round(q * 100)}": v for q, v in zip(QUANTILES, values, strict=True)}


def _extremes(array: Any) -> tuple[Any, Any]:
    """The least and the greatest value, NaN set aside."""
    memory = None if pa.types.is_temporal(array.type) else bare(array)
    if memory is not None:
        return np.fmin.reduce(memory).item(), np.fmax.reduce(memory).item()
    found = pc.min_max(array)
    return found["min"].as_py(), found["max"].as_py()
