"""Whether a column came in order so far. Exact; costs nothing once the order is broken."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow.compute as pc

Direction = Literal["", "asc", "desc"]


class Order:
    """`direction` is "" for a column that is constant, unordered or holds fewer than two values."""

    def __init__(self) -> None:
        self._rising = self._falling = True
        self._last: Any = None
        self._moved = False

    @property
    def monotone(self) -> bool:
        return self._rising or self._falling

    @property
    def direction(self) -> Direction:
        if not self._moved or not self.monotone:
            return ""
        return "asc" if self._rising else "desc"

    def add(self, array: Any) -> None:
        """Take an array without nulls."""
        if not self.monotone or not len(array):
            return
        if self._last is not None:
            self._compare(self._last, array[0])
        if len(array) > 1 and self.monotone:
            before, after = array.slice(0, len(array) - 1), array.slice(1)
            self._take(pc.min_max(pc.less(before, after)), pc.min_max(pc.greater(before, after)))
        self._last = array[len(array) - 1]

    def _compare(self, before: Any, after: Any) -> None:
        up, down = pc.less(before, after).as_py(), pc.greater(before, after).as_py()
        self._step(up=up, down=down)

    def _take(self, rises: Any, falls: Any) -> None:
        self._step(up=rises["max"].as_py(), down=falls["max"].as_py())

    def _step(self, *, up: bool, down: bool) -> None:
        self._moved = self._moved or up or down
        self._rising = self._rising and not down
        self._falling = self._falling and not up
