"""The feed: KV events of all members into the index, with an eye on what went missing.

Batches of a replica are numbered by one. A number that jumps means that removals may be among what
was missed, so all of the replica's credit goes at once; a block whose parent was never seen means
that its place is unknown. Either way the replica is `lost` until `resync` brings a whole view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from router.index import PrefixIndex
from router.kv import KvEvent, KvStored


class Feed:
    """Knows the members by block size; what strangers say is ignored."""

    def __init__(self, index: PrefixIndex) -> None:
        self.index = index
        self.lost: set[str] = set()
        self.gaps = 0
        self.heard: dict[str, int] = {}  # last batch number of each member that numbers them
        self._sizes: dict[str, int] = {}

    def join(self, replica: str, block_size: int) -> None:
        """Start with an empty view. ValueError when the block size is not that of the others:
        hashes of two sizes never match, and routing would silently become blind.
        """
        others = {size for name, size in self._sizes.items() if name != replica} - {block_size}
        if others:
            raise ValueError(
                f"{replica} has blocks of {block_size} tokens, the fleet of {others.pop()}: "
                "give all replicas of a model one block size"
            )
        self._sizes[replica] = block_size
        self._restart(replica)

    def leave(self, replica: str) -> None:
        if self._sizes.pop(replica, None) is not None:
            self._restart(replica)
            self.index.remove(replica)

    def take(self, replica: str, events: Iterable[KvEvent], number: int | None = None) -> bool:
        """Apply a batch; batches heard before are skipped. False while the replica is lost.

        ValueError when an event's block size is not the member's; nothing of it is applied.
        """
        if replica not in self._sizes:
            return True
        if number is not None and not self._next(replica, number):
            return replica not in self.lost
        for event in events:
            self._check(replica, event)
            if not self.index.apply(replica, event) and replica not in self.lost:
                self.lost.add(replica)
                self.gaps += 1
        return replica not in self.lost

    def resync(self, replica: str, events: Iterable[KvEvent], number: int | None = None) -> bool:
        """Replace the view by a snapshot of the replica's cache as of batch `number`."""
        if replica in self._sizes:
            self._restart(replica)
        return self.take(replica, events, number)

    def restock(
        self, replica: str, holdings: Mapping[int, int], number: int, *, first: bool, last: bool
    ) -> bool:
        """A part of a snapshot in our own names (`router.holdings`), as of batch `number`.

        The first part replaces the view; with the last one the replica is lost no more.
        """
        if replica not in self._sizes:
            return True
        if first:
            self._restart(replica)
            self.lost.add(replica)
        self.index.hold(replica, holdings)
        if last:
            self.heard[replica] = number
            self.lost.discard(replica)
        return True

    def told(self, replica: str, number: int) -> bool:
        """The number of the replica's latest batch, by its own report. False: send a snapshot.

        This is how a view is found wanting that heard nothing at all: that of a router which has
        just started, and that of a replica whose last message was lost.
        """
        if replica not in self._sizes or number < 0:
            return True
        if replica not in self.lost and self.heard.get(replica, -1) < number:
            self.index.add(replica)
            self.lost.add(replica)
            self.gaps += 1
        return replica not in self.lost

    def _restart(self, replica: str) -> None:
        self.index.add(replica)
        self.lost.discard(replica)
        self.heard.pop(replica, None)

    def _next(self, replica: str, number: int) -> bool:
        last = self.heard.get(replica)
        if last is not None and number <= last:
            return False
        self.heard[replica] = number
        if last is not None and number != last + 1:
            self.index.add(replica)
            self.lost.add(replica)
            self.gaps += 1
        return True

    def _check(self, replica: str, event: KvEvent) -> None:
        if isinstance(event, KvStored) and event.block_size != self._sizes[replica]:
            raise ValueError(
                f"{replica} joined with blocks of {self._sizes[replica]} tokens and now stores "
                f"blocks of {event.block_size}: report the engine's true block size at join"
            )
