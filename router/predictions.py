"""Predictions: blocks that a decision will bring to a replica, until the engine says so itself.

Each decision is one bucket with a deadline. Buckets of one replica may name the same block; its
mark goes with the last of them. The engine's own word (`settle`) ends a mark early.
"""

from __future__ import annotations

from collections import deque


class Predictions:
    """Bounded by `limit` marks in all buckets together: the oldest bucket goes first."""

    def __init__(self, *, limit: int, ttl: float) -> None:
        self.limit = limit
        self.ttl = ttl
        self.masks: dict[int, int] = {}
        # bit -> block -> how many buckets name it, and the first of them: a bucket from before
        # `settle` still names its block, but no longer has a say.
        self._counts: dict[int, dict[int, tuple[int, int]]] = {}
        self._buckets: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._deadlines: deque[tuple[float, int]] = deque()
        self._size = 0
        self._serial = 0

    def __len__(self) -> int:
        """Blocks with at least one mark."""
        return len(self.masks)

    def add(self, bit: int, blocks: tuple[int, ...], now: float) -> int:
        """Mark the blocks until `now + ttl`. The answer names the bucket; 0 when none was made."""
        if not blocks:
            return 0
        self._serial += 1
        self._buckets[self._serial] = (bit, blocks)
        self._deadlines.append((now + self.ttl, self._serial))
        self._size += len(blocks)
        counts, masks = self._counts.setdefault(bit, {}), self.masks
        once = (1, self._serial)
        if masks.keys().isdisjoint(blocks):  # most often: all new, and then no loop
            masks.update(dict.fromkeys(blocks, bit))
            counts.update(dict.fromkeys(blocks, once))
        else:
            for block in blocks:
                named = counts.get(block)
                counts[block] = (named[0] + 1, named[1]) if named else once
                masks[block] = masks.get(block, 0) | bit
        while self._size > self.limit:
            self.retract(self._deadlines.popleft()[1])
        return self._serial

    def expire(self, now: float) -> None:
        """End the buckets whose time is over."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            self.retract(deadlines.popleft()[1])

    def retract(self, bucket: int) -> None:
        """End a bucket now: its turn never began. Ending it twice is no error."""
        found = self._buckets.pop(bucket, None)
        if found is None:
            return
        bit, blocks = found
        self._size -= len(blocks)
        counts = self._counts.get(bit)
        if counts is None:
            return
        for block in blocks:
            named = counts.get(block)
            if named is None or bucket < named[1]:
                continue
            if named[0] > 1:
                counts[block] = (named[0] - 1, named[1])
            else:
                del counts[block]
                self._clear(bit, block)

    def settle(self, bit: int, block: int) -> None:
        """The engine spoke of this block: what was guessed no longer counts."""
        counts = self._counts.get(bit)
        if counts and counts.pop(block, None):
            self._clear(bit, block)

    def forget(self, bit: int) -> None:
        """Drop all marks of a replica."""
        for block in self._counts.pop(bit, {}):
            self._clear(bit, block)
        for bucket in [name for name, (owner, _) in self._buckets.items() if owner == bit]:
            self._size -= len(self._buckets.pop(bucket)[1])

    def _clear(self, bit: int, block: int) -> None:
        left = self.masks.pop(block) & ~bit
        if left:
            self.masks[block] = left
