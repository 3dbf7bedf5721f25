"""Search hits: whether the best ones are found, judged by their scores."""

from __future__ import annotations

import heapq
import math
from typing import Any

from toolruns.arrays import numbers

TOP = 10
SETTLED_GAP = 0.2


class Hits:
    """The top scores of a stream of hits. `stable` counts the chunks that left them unchanged."""

    def __init__(self, column: str, top: int = TOP) -> None:
        self._column = column
        self._top = top
        self._best: list[tuple[float, int]] = []
        self._rows = 0
        self._newest = float("nan")
        self._changed = False
        self.stable = 0

    def add(self, batch: Any) -> None:
        index = batch.schema.get_field_index(self._column)
        scores = numbers(batch.column(index)).tolist() if index >= 0 else []
        for offset, score in enumerate(scores):
            if math.isnan(score):  # a hit without a score cannot be ranked
                continue
            self._newest = score
            # Of equal scores the earlier hit stays: the later one changes nothing.
            entry = (score, -(self._rows + offset))
            if len(self._best) < self._top:
                heapq.heappush(self._best, entry)
                self._changed = True
            elif entry > self._best[0]:
                heapq.heapreplace(self._best, entry)
                self._changed = True
        self._rows += batch.num_rows

    def end_chunk(self) -> None:
        self.stable = 0 if self._changed else self.stable + 1
        self._changed = False

    @property
    def settled(self) -> bool:
        """Whether the newest hit is so far below the k-th best that better ones are unlikely."""
        if len(self._best) < self._top:
            return False
        best = max(self._best)[0]
        return best > 0 and self._best[0][0] - self._newest > SETTLED_GAP * best
