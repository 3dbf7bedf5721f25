"""The choice of an ingress by itself, where the router has not answered: by prefix, within bounds.

The same prefix goes to the same replica, so that its cache is of use, but never onto one that this
ingress alone has filled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from actors.messages import ReplicaCard
from router.rendezvous import rendezvous


class HashedChoice:
    """Counts the turns that this ingress has on each replica, however they were chosen."""

    def __init__(self) -> None:
        self._turns: Counter[str] = Counter()

    def choose(self, key: str, cards: Mapping[str, ReplicaCard]) -> str | None:
        """A replica for the prefix `key`; None when each of them is full."""
        free = [
            name
            for name, card in cards.items()
            if not card.max_turns or self._turns[name] < card.max_turns
        ]
        return rendezvous(key, free) if free else None

    def began(self, replica: str) -> None:
        self._turns[replica] += 1

    def ended(self, replica: str) -> None:
        self._turns[replica] -= 1
        if not self._turns[replica]:
            del self._turns[replica]
