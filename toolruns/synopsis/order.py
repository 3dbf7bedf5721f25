"""Whether a column came in order so far. Exact; costs nothing once the order is broken."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow.compute as pc

from toolruns.arrays import bare

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
        memory = bare(array)
        if memory is None:
            self._add_by_arrow(array)
            return
        if self._last is not None:
            self._step(up=bool(memory[0] > self._last), down=bool(memory[0] < self._last))
        # Once the way is known, only steps the other way say anything new.
        up = not (self._moved and self._rising) and bool((memory[1:] > memory[:-1]).any())
        down = not (self._moved and self._falling) and bool((memory[1:] < memory[:-1]).any())
        self._step(up=up, down=down)
        self._last = memory[-1]

    def _add_by_arrow(self, array: Any) -> None:
        first, last = array[0], array[len(array) - 1]
        if self._last is not None:
            up, down = pc.greater(first, self._last), pc.less(first, self._last)
            self._step(up=up.as_py(), down=down.as_py())
        before, after = array.slice(0, len(array) - 1), array.slice(1)
        up, down = pc.any(pc.greater(after, before)), pc.any(pc.less(after, before))
        self._step(up=bool(up.as_py()), down=bool(down.as_py()))
        self._last = last

    def _step(self, *, up: bool, down: bool) -> None:
        self._moved = self._moved or up or down
        self._rising = self._rising and not down
        self._falling = self._falling and not up
