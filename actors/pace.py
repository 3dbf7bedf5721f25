"""The pace of one turn: when its events came, and when each of its calls could be dispatched.

Told every batch; for an event that opens no call it costs a comparison of types.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from turns.events import Event, ToolCallReady


class Pace:
    """Times in seconds of `clock`; -1 stands for what there is not."""

    __slots__ = ("_clock", "_first", "_last", "_longest", "_steps", "ready")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._first = self._last = self._longest = -1.0
        self._steps = 0
        self.ready: list[float] = []

    def step(self, events: Sequence[Event]) -> None:
        """The events of one engine step."""
        now = self._clock()
        if self._steps:
            gap = now - self._last
            self._longest = max(self._longest, gap)
        else:
            self._first = now
        self._last = now
        self._steps += 1
        for event in events:
            if type(event) is ToolCallReady:
                self.ready.append(now)

    def gap(self) -> float:
        """The mean time between batches."""
        return (self._last - self._first) / (self._steps - 1) if self._steps > 1 else -1.0

    def longest(self) -> float:
        return self._longest

    def lasted(self) -> float:
        """From the first batch to the last."""
        return self._last - self._first if self._steps else -1.0

    def lead(self, call: int) -> float:
        """How long before the turn's last event its `call`-th complete call was there."""
        return self._last - self.ready[call] if call < len(self.ready) else -1.0
