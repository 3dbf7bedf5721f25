"""Pace: how fast places come free, which is what an honest retry-after is made of."""

from __future__ import annotations

from math import ceil

_MEMORY = 0.9  # weight of the past in the running mean
_LONGEST = 60


class Pace:
    """A running mean of how long turns hold their place, in seconds. None until one has ended."""

    def __init__(self, mean: float | None = None) -> None:
        self.mean = mean

    def ended(self, seconds: float) -> None:
        held = max(0.0, seconds)
        self.mean = held if self.mean is None else _MEMORY * self.mean + (1 - _MEMORY) * held

    def retry_after(self, ahead: int, active: int) -> int:
        """Whole seconds, 1 to 60, until `ahead` turns and one more find a place among `active`."""
        if self.mean is None or not active:
            return 1
        return min(_LONGEST, max(1, ceil((ahead + 1) * self.mean / active)))
