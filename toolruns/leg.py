"""A leg of a run: what one budget bought. The call is the first, each `Continue` begins another."""

from __future__ import annotations

from typing import Any

from toolruns.budget import Budget
from toolruns.endings import Ending

WARN_AT = 0.8


class Leg:
    """Counts rows and bytes against the budget; times are those of the run's clock.

    It `ends_at` a time at the latest, and `yields_at` one. Who wakes at a time must compare with
    the very sum: `now - began >= seconds` can be false at `began + seconds`.
    """

    def __init__(self, budget: Budget, now: float) -> None:
        self.budget = budget
        self.began = now
        self.ends_at = now + budget.seconds
        self.yields_at = now + budget.yield_after
        self.rows = 0
        self.bytes = 0
        self._warned: set[str] = set()

    @property
    def room(self) -> int:
        """Rows that may still come."""
        return max(0, self.budget.rows - self.rows)

    def spent(self, now: float) -> float:
        return now - self.began

    def count(self, rows: int, size: int) -> None:
        self.rows += rows
        self.bytes += size

    def overspent(self) -> Ending | None:
        """The ending that rows or bytes call for."""
        if self.rows >= self.budget.rows:
            return Ending.BUDGET_ROWS
        return Ending.BUDGET_BYTES if self.bytes >= self.budget.bytes else None

    def clock_ending(self) -> Ending:
        inherited = self.budget.origin == "session"
        return Ending.DEADLINE_INHERITED if inherited else Ending.BUDGET_WALL_CLOCK

    def warnings(self, now: float) -> list[tuple[str, float]]:
        """Limits of which most is spent, each told once: (name, share)."""
        shares = {
            "rows": self.rows / self.budget.rows,
            "bytes": self.bytes / self.budget.bytes,
            "seconds": self.spent(now) / self.budget.seconds,
        }
        fresh = [(n, s) for n, s in shares.items() if s >= WARN_AT and n not in self._warned]
        self._warned.update(name for name, _ in fresh)
        return fresh

    def left(self, now: float) -> dict[str, Any]:
        seconds = max(0.0, self.budget.seconds - self.spent(now))
        return {
            "rows_left": self.room,
            "seconds_left": round(seconds, 2),
            "from": self.budget.origin,
        }
