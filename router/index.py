"""The prefix index: which replicas hold which block.

One dict from block hash to a bitmask of replicas (masks are interned, so a block costs its key and
its dict slot: about 90 bytes), and one dict a replica from the engine's own hash to ours (about 90
more), needed to place children and removals. Measured: 1 M confirmed blocks are 190 MB, 10 M are
1.7 GB (`benchmarks/bench_router.py`).

Confirmed entries come from KV events and stand until the engine removes them. Predicted entries
come from routing decisions, stand for a time only, and give way when the event arrives: a burst of
turns with one prefix does not scatter before the engine has told.

Nothing here takes long at once: the bit of a replica that left is masked out at once and its
entries are swept a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from router.blocks import follow, root
from router.kv import KvCleared, KvEvent, KvHeld, KvRemoved, KvStored
from router.predictions import Predictions

_SWEEP = 512
_MAX_MASKS = 65_536


class Seat:
    """A replica's place in the masks, and its engine's hashes in ours."""

    __slots__ = ("bit", "chain_of", "name")

    def __init__(self, name: str, bit: int) -> None:
        self.name = name
        self.bit = bit
        self.chain_of: dict[int, int] = {}


class PrefixIndex:
    """Which replicas hold a prefix, and how much of it. Bounded by `max_blocks`."""

    def __init__(
        self, *, max_blocks: int = 4_000_000, max_predicted: int = 262_144, ttl: float = 120.0
    ) -> None:
        self.max_blocks = max_blocks
        self.predictions = Predictions(limit=max_predicted, ttl=ttl)
        self._blocks: dict[int, int] = {}  # oldest first: the order is the recency
        self._seats: dict[str, Seat] = {}
        self._by_bit: dict[int, Seat] = {}
        self._alive = 0
        self._leaving: list[Seat] = []
        self._free_bits: list[int] = []
        self._masks: dict[int, int] = {}

    def __len__(self) -> int:
        """Confirmed blocks, those of replicas that left and are not swept yet included."""
        return len(self._blocks)

    def add(self, replica: str) -> None:
        """Give the replica an empty place; what it held before is forgotten."""
        self.remove(replica)
        bit = self._free_bits.pop() if self._free_bits else 1 << len(self._by_bit)
        seat = Seat(replica, bit)
        self._seats[replica] = self._by_bit[bit] = seat
        self._alive |= bit

    def remove(self, replica: str) -> None:
        """Forget all that the replica holds. Unknown ones are no error."""
        seat = self._seats.pop(replica, None)
        if seat is None:
            return
        self._alive &= ~seat.bit
        self.predictions.forget(seat.bit)
        self._leaving.append(seat)

    def overlap(self, hashes: Sequence[int]) -> dict[str, int]:
        """Leading blocks of `hashes` each replica holds; replicas that hold none are left out."""
        return self.walk(hashes)[0]

    def walk(self, hashes: Sequence[int]) -> tuple[dict[str, int], int]:
        """`overlap`, and how many leading blocks stand on confirmed entries alone.

        Walks as deep as the deepest match and no further.
        """
        confirmed, predicted = self._blocks.get, self.predictions.masks.get
        found: dict[str, int] = {}
        alive, solid, depth = self._alive, -1, 0
        if not alive:
            return found, 0
        for depth, block in enumerate(hashes):
            here = confirmed(block, 0) & alive
            if here != alive:
                both = here | predicted(block, 0) & alive
                if both != here and solid < 0:
                    solid = depth
                if both != alive:
                    if depth:
                        self._note(found, alive & ~both, depth)
                    alive = both
                    if not alive:
                        break
        else:
            depth = len(hashes)
            self._note(found, alive if depth else 0, depth)
        return found, depth if solid < 0 else solid

    def _note(self, found: dict[str, int], mask: int, depth: int) -> None:
        while mask:
            bit = mask & -mask
            found[self._by_bit[bit].name] = depth
            mask ^= bit

    def apply(self, replica: str, event: KvEvent) -> bool:
        """Take in one KV event. False: its place is unknown (a parent never seen), resync.

        Events of a replica that is not a member are ignored: membership alone says who exists.
        Stored twice counts once, so that a snapshot may overlap the events around it.
        """
        self._sweep()
        seat = self._seats.get(replica)
        if seat is None:
            return True
        match event:
            case KvStored():
                return self._store(seat, event)
            case KvHeld(block_hashes=theirs, ours=ours):
                self._place(seat, theirs, ours)
            case KvRemoved(block_hashes=block_hashes):
                for block in block_hashes:
                    self._drop(seat, block)
            case KvCleared():
                self.add(replica)
        return True

    def _store(self, seat: Seat, event: KvStored) -> bool:
        if event.parent is None:
            parent: int | None = root(event.salt, event.lora)
        else:
            parent = seat.chain_of.get(event.parent)
        if parent is None or len(event.token_ids) != len(event.block_hashes) * event.block_size:
            return False
        ours = follow(parent, event.token_ids, event.block_size, event.extras)
        self._place(seat, event.block_hashes, ours)
        return True

    def _place(self, seat: Seat, names: Sequence[int], ours: Sequence[int]) -> None:
        blocks, bit, intern = self._blocks, seat.bit, self._intern
        for theirs, block in zip(names, ours, strict=True):
            seat.chain_of[theirs] = block
            held = blocks.get(block, 0)
            if not held & bit:
                blocks[block] = intern(held | bit)
            self.predictions.settle(bit, block)
        if len(blocks) > self.max_blocks:
            self._trim()

    def _drop(self, seat: Seat, theirs: int) -> None:
        block = seat.chain_of.pop(theirs, None)
        if block is not None:
            self._unset(seat.bit, block)
            self.predictions.settle(seat.bit, block)

    def _unset(self, bit: int, block: int) -> None:
        held = self._blocks.get(block, 0)
        if held & bit:
            if held == bit:
                del self._blocks[block]
            else:
                self._blocks[block] = self._intern(held & ~bit)

    def predict(self, replica: str, hashes: Iterable[int], now: float) -> int:
        """Expect the replica to hold these blocks soon; the answer names it for `retract`."""
        return self.predictions.add(self._seats[replica].bit, tuple(hashes), now)

    def touch(self, hashes: Sequence[int]) -> None:
        """Keep these blocks longest when the bound bites; does nothing while it is far."""
        blocks = self._blocks
        if len(blocks) * 4 < self.max_blocks * 3:
            return
        for block in reversed(hashes):  # the head last: a tail without its head is worth nothing
            held = blocks.pop(block, 0)
            if held:
                blocks[block] = held

    def holdings(self, replica: str) -> dict[int, int]:
        """The replica's confirmed blocks, engine's hash to ours (for a snapshot)."""
        return self._seats[replica].chain_of

    def hold(self, replica: str, holdings: Mapping[int, int]) -> None:
        """Add what `holdings` (this one or the replica's own) gave."""
        self._place(self._seats[replica], list(holdings), list(holdings.values()))

    def _intern(self, mask: int) -> int:
        if len(self._masks) > _MAX_MASKS:
            self._masks.clear()
        return self._masks.setdefault(mask, mask)

    def _trim(self) -> None:
        # In batches: the front of a dict with holes is slow to find one entry at a time.
        extra = len(self._blocks) - self.max_blocks + self.max_blocks // 64
        for block in list(islice(self._blocks, extra)):
            del self._blocks[block]

    def _sweep(self) -> None:
        if not self._leaving:
            return
        seat = self._leaving[-1]
        for _ in range(_SWEEP):
            if not seat.chain_of:
                self._leaving.remove(seat)
                self._free_bits.append(seat.bit)
                return
            _, block = seat.chain_of.popitem()
            self._unset(seat.bit, block)
