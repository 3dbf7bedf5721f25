"""Pace: how fast places come free, which is what an honest retry-after is made of."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
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

    def retry_after(self, ahead: int, active: int, made: Iterable[float], now: float) -> int:
        """Whole seconds, 1 to 60, until `ahead` turns and one more find a place among `active`;
        `made` has when the places were given, oldest first, as far as that is known.

        At an even pace places come free one after the other. Turns that began together, a burst on
        an idle fleet, end together too: then none comes free before the oldest has had its time.
        """
        if self.mean is None or not active:
            return 1
        even = (ahead + 1) * self.mean / active
        rounds, place = divmod(ahead, active)
        began = next(islice(made, place, None), None)
        due = 0.0 if began is None else began + (rounds + 1) * self.mean - now
        return min(_LONGEST, max(1, ceil(max(even, due))))
