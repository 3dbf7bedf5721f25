"""One row drawn of each so many: a sample spread evenly over a stream that no period can fool."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]


AHEAD = 4096
"""Groups that are drawn at a time."""


class Draws:
    """Of every `by` rows in a row one, each with the same chance, whatever the pieces are."""

    def __init__(self, by: int, rng: Any) -> None:
        self._by = by
        self._rng = rng
        self._seen = 0
        self._groups = 0
        self._ahead: Positions = np.empty(0, np.int64)

    def rows(self, count: int) -> Positions:
        """The positions that are drawn among the next `count` rows."""
        start, end = self._seen, self._seen + count
        self._seen = end
        if self._groups * self._by < end:
            self._draw(max(AHEAD, -(-end // self._by) - self._groups))
        cut = int(self._ahead.searchsorted(end))
        found: Positions = self._ahead[:cut] - start
        self._ahead = self._ahead[cut:]
        return found

    def _draw(self, groups: int) -> None:
        firsts = np.arange(self._groups, self._groups + groups) * self._by
        drawn = firsts + self._rng.integers(0, self._by, groups)
        self._ahead = np.concatenate((self._ahead, drawn))
        self._groups += groups
