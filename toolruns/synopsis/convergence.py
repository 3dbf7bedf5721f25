"""Whether a column still brings news, judged at every doubling of the rows.

At n = 64, 128, 256 … the window (n/2, n] is held against all that came before it:

* `slope`: log2(D(n) / D(n/2)), the Heaps exponent of distinct values (Good-Turing coverage says
  "seen all" on clustered keys, where it is 1);
* `extremes`: new minima and maxima in the window; 2 ln 2 are expected when order means nothing;
* `psi`: the window's values against the deciles of the past;
* `ci`: half the 95 % confidence interval of the mean, relative to the mean.

The judgement depends on row numbers alone, never on how the rows were cut into chunks.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from toolruns.arrays import Floats

State = Literal["converged", "settling", "widening", "drifting", "ordered"]
WORST_FIRST: tuple[State, ...] = ("drifting", "widening", "settling", "ordered", "converged")

FIRST_CHECK = 64
LEAST_ROWS = 200
FLAT_SLOPE = 0.1
STEEP_SLOPE = 0.5
EXPECTED_EXTREMES = 2 * math.log(2)
SAME_PSI = 0.1
DRIFT_PSI = 0.25
GOOD_CI = 0.02
GOOD_WINDOWS = 2
LEAST_VALUES = 2
WINDOW_SAMPLE = 2048
_DECILES = [tenth / 10 for tenth in range(1, 10)]


class Judgement(Struct, frozen=True):
    """A column's state at the last check, with what it was judged by; NaN where unknown."""

    state: State = "settling"
    slope: float = math.nan
    extremes: int = 0
    psi: float = math.nan
    ci: float = math.nan


def next_check(rows: int) -> int:
    """The row number after `rows` at which columns are judged again."""
    return FIRST_CHECK if rows < FIRST_CHECK else 1 << rows.bit_length()


def psi(past: Floats, values: Floats) -> float:
    """Population stability index of `values` against `past`, over the deciles of the past."""
    edges = np.unique(np.quantile(past, _DECILES))
    before, now = _shares(edges, past), _shares(edges, values)
    return float(np.sum((now - before) * np.log(now / before)))


def _shares(edges: Any, values: Floats) -> Floats:
    """The share of values in each cell between edges; an empty cell counts as a tiny one."""
    cells = np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)
    shares: Floats = np.maximum(cells / len(values), 1e-4)
    return shares


class Convergence:
    """The watch over one column. `numeric` columns have quantiles, extremes and a mean."""

    def __init__(self, *, numeric: bool, mean: bool, seed: int) -> None:
        self.judgement = Judgement()
        self._numeric = numeric
        self._mean = mean
        self._rng = np.random.default_rng(seed)
        self._past: Floats = np.empty(0)
        self._sample: list[Floats] = []
        self._distinct = 0
        self._good_windows = 0
        self._low, self._high = math.inf, -math.inf
        self._extremes = 0
        self._count, self._sum, self._squares = 0, 0.0, 0.0

    def add(self, values: Floats, window: int) -> None:
        """Take the non-null numbers of a piece that lies inside one window of `window` rows."""
        if not self._numeric or not len(values):
            return
        self._extend(values)
        self._count += len(values)
        self._sum += float(values.sum())
        self._squares += float(values @ values)
        if window > WINDOW_SAMPLE:
            share = max(1, round(len(values) * WINDOW_SAMPLE / window))
            values = values[self._rng.integers(0, len(values), share)]
        self._sample.append(values)

    def _extend(self, values: Floats) -> None:
        """Count the values that were a new minimum or maximum when they came."""
        high, low = float(values.max()), float(values.min())
        if high > self._high:
            highs = np.maximum.accumulate(np.concatenate(([self._high], values)))
            self._extremes += int(np.count_nonzero(highs[1:] > highs[:-1]))
            self._high = high
        if low < self._low:
            lows = np.minimum.accumulate(np.concatenate(([self._low], values)))
            self._extremes += int(np.count_nonzero(lows[1:] < lows[:-1]))
            self._low = low

    def check(self, rows: int, distinct: int, *, monotone: bool) -> None:
        """Judge at row number `rows`; `distinct` counts values, `monotone` speaks of all rows."""
        values = np.concatenate(self._sample) if self._sample else np.empty(0)
        drift = math.nan
        if len(values) and len(self._past):
            drift = psi(self._past, values)
        slope = math.log2(distinct / self._distinct) if self._distinct and distinct else math.nan
        ci = self._relative_ci()
        state = self._state(rows, slope, drift, ci, monotone=monotone and distinct > 1)
        self.judgement = Judgement(state, slope, self._extremes, drift, ci)
        self._distinct, self._extremes = distinct, 0
        self._sample.clear()
        # Window and past stand for equally many rows: equal parts of both stand for all of them.
        past = np.concatenate((self._past, values))
        self._past = self._rng.choice(past, min(len(past), WINDOW_SAMPLE), replace=False)

    def _state(self, rows: int, slope: float, drift: float, ci: float, *, monotone: bool) -> State:
        flat = slope <= FLAT_SLOPE
        calm = self._extremes <= max(1.0, 3 * EXPECTED_EXTREMES)
        same = not self._numeric or math.isnan(drift) or drift < SAME_PSI
        sure = not self._mean or math.isnan(ci) or ci <= GOOD_CI
        self._good_windows = self._good_windows + 1 if flat and calm and same and sure else 0
        if monotone or self._extremes > rows // 4:
            return "ordered"
        if drift >= DRIFT_PSI:
            return "drifting"
        if slope >= STEEP_SLOPE:
            return "widening"
        if self._good_windows >= GOOD_WINDOWS and rows >= LEAST_ROWS:
            return "converged"
        return "settling"

    def _relative_ci(self) -> float:
        if not self._mean or self._count < LEAST_VALUES:
            return math.nan
        mean = self._sum / self._count
        variance = max(0.0, self._squares / self._count - mean * mean)
        if variance == 0.0:
            return 0.0
        return 1.96 * math.sqrt(variance / self._count) / abs(mean) if mean else math.inf


def worst(judged: dict[str, Any]) -> State:
    """The verdict of the stream: its worst column, those that are merely ordered set aside."""
    states = {j.state for j in judged.values()}
    if states - {"ordered"}:
        states.discard("ordered")
    return next((state for state in WORST_FIRST if state in states), "settling")
