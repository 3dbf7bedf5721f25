"""Trust: whether engines keep what the index promises, as a running figure and an alarm.

Both ways of being wrong count: blocks that the router promised and the engine did not have (its
view is ahead), and blocks that the engine had and nobody promised (its view is blind: hashes of
another block size, salt or template never match, and routing silently becomes round robin).
"""

from __future__ import annotations

_MEMORY = 0.98  # weight of the past at each turn: the last fifty or so decide
_ENOUGH = 20
"""Turns below which nothing is said: a fleet that has just started has seen nothing yet."""

ALARM = 25
"""Per cent of wrong blocks from which on somebody should look."""


class Trust:
    """Running sums of blocks promised and found; older turns fade."""

    def __init__(self) -> None:
        self.turns = 0
        self._wrong = 0.0
        self._all = 0.0

    def saw(self, promised: int, found: int) -> None:
        """A turn began: the router promised so many blocks, the engine found so many."""
        if not promised and not found:
            return
        self.turns += 1
        self._wrong = _MEMORY * self._wrong + abs(promised - found)
        self._all = _MEMORY * self._all + max(promised, found)

    @property
    def astray(self) -> int:
        """Per cent of recent blocks that were promised and not found, or found unpromised."""
        return round(100 * self._wrong / self._all) if self._all else 0

    @property
    def alarm(self) -> bool:
        return self.turns >= _ENOUGH and self.astray >= ALARM
