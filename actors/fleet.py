"""The fleet as one process sees it: which replicas of a model exist, told by Serve's membership.

The request router that Serve runs in this process (deployments/pinning.py) calls `changed`; the
router's module is copied by value into each process, so what must be shared lives here.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from actors.messages import ReplicaCard

Listener = Callable[["Fleet", frozenset[str], frozenset[str]], None]
"""Called with the fleet, the replicas that came and those that left."""


REMEMBERED = 256
"""Replicas that left, the last ones."""


class Fleet:
    """The replicas of one engine deployment. `departed` are those that were here before."""

    def __init__(self) -> None:
        self.cards: dict[str, ReplicaCard] = {}
        self.departed: dict[str, None] = {}
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Hear of changes; called at once with what is there already."""
        self._listeners.append(listener)
        if self.cards:
            listener(self, frozenset(self.cards), frozenset())

    def replace(self, cards: dict[str, ReplicaCard]) -> None:
        came = frozenset(cards.keys() - self.cards.keys())
        left = frozenset(self.cards.keys() - cards.keys())
        self.cards = cards
        known = [*(name for name in self.departed if name not in cards), *sorted(left)]
        self.departed = dict.fromkeys(known[-REMEMBERED:])
        if came or left:
            for listener in self._listeners:
                listener(self, came, left)


FLEETS: dict[str, Fleet] = {}


def fleet(deployment: str) -> Fleet:
    """The fleet of a deployment, by its name."""
    return FLEETS.setdefault(deployment, Fleet())


def changed(deployment: str, metadata: dict[str, dict[str, object]]) -> None:
    """Serve's view changed: replica id -> what the replica published of itself."""
    cards = {
        replica: msgspec.convert(card, ReplicaCard) for replica, card in metadata.items() if card
    }
    fleet(deployment).replace(cards)
