"""The prefix cache, block by block: what is resident, who holds it, what is evicted next.

A block is named by a chained hash: XXH3-64 of its token ids seeded with its parent's name, the
first one with the hash of the salt. A turn holds every block of its prefix from the root on, so a
held block's parent is held too; blocks given back are queued for eviction with the last one of
the turn first. Hence the resident blocks are always closed under "parent of", and what can be hit
is always a prefix.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence

import xxhash

from actors.engines.engine import KvCleared, KvEvent, KvRemoved, KvStored


def root(salt: str) -> int:
    """The seed of a chain: prefixes under different salts share no name."""
    return xxhash.xxh3_64_intdigest(salt.encode()) if salt else 0


def extend(
    chain: list[int],
    tokens: Sequence[int],
    stop: int,
    block_size: int,
    salt: str = "",
    *,
    extras: Sequence[str] = (),
) -> list[int]:
    """Append to `chain` the names of the whole blocks of `tokens[:stop]` that it lacks.

    `extras` has, for the first blocks, what each depends on besides tokens, "" for nothing.
    """
    parent = chain[-1] if chain else root(salt)
    # ids are below 2**32 (the engine checks the vocabulary), so four bytes hold each.
    packed = array("I", tokens[len(chain) * block_size : stop]).tobytes()
    width = block_size * 4
    digest, append = xxhash.xxh3_64_intdigest, chain.append
    for start in range(0, len(packed) - width + 1, width):
        if len(chain) < len(extras) and (extra := extras[len(chain)]):
            parent = digest(extra.encode(), parent)
        parent = digest(packed[start : start + width], parent)
        append(parent)
    return chain


class PrefixCache:
    """`capacity` blocks of `block_size` tokens. Events pile up until `take_events`."""

    def __init__(self, capacity: int, block_size: int) -> None:
        if capacity < 1 or block_size < 1:
            raise ValueError("a prefix cache needs at least one block of at least one token")
        self.capacity = capacity
        self.block_size = block_size
        self._refs: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._private = 0
        self._events: list[KvEvent] = []

    @property
    def used(self) -> int:
        """Blocks that turns hold now, filled or not: they cannot be evicted."""
        return len(self._refs) - len(self._idle) + self._private

    @property
    def free(self) -> int:
        """Blocks that can be had now, those that hold evictable content included."""
        return self.capacity - self.used

    def resident(self) -> frozenset[int]:
        return frozenset(self._refs)

    def match(self, chain: Sequence[int], limit: int) -> int:
        """How many leading blocks of `chain`, at most `limit`, are resident."""
        refs = self._refs
        for count in range(min(limit, len(chain))):
            if chain[count] not in refs:
                return count
        return min(limit, len(chain))

    def hold(self, names: Sequence[int]) -> None:
        """Keep resident blocks from eviction until they are released."""
        for name in names:
            if self._refs[name] == 0:
                del self._idle[name]
            self._refs[name] += 1

    def take(self, count: int) -> bool:
        """Take `count` empty blocks, evicting the least recently used. False: nothing was taken."""
        if count > self.free:
            return False
        evicted = []
        while self.capacity - len(self._refs) - self._private < count:
            name, _ = self._idle.popitem(last=False)
            del self._refs[name]
            evicted.append(name)
        if evicted:
            self._events.append(KvRemoved(evicted))
        self._private += count
        return True

    def store(
        self,
        parent: int | None,
        names: Sequence[int],
        tokens: Sequence[int],
        salt: str,
        extras: Sequence[str] = (),
    ) -> None:
        """Blocks that the caller took are full now: they become resident and stay held.

        One that another turn stored meanwhile is shared, and the caller's copy is empty again.
        `extras` are of the first of these blocks.
        """
        size = self.block_size
        keys = [*extras, *("" for _ in range(len(names) - len(extras)))] if any(extras) else None

        def announce(run: list[int], after: int | None, end: int) -> None:
            """Publish the run of blocks, which are the last ones before block `end`."""
            if run:
                begin = end - len(run)
                ids = list(tokens[begin * size : end * size])
                own = keys[begin:end] if keys else None
                self._events.append(KvStored(run, after, ids, size, salt, extras=own))

        self._private -= len(names)
        fresh: list[int] = []
        after = parent
        for position, name in enumerate(names):
            if name not in self._refs:
                fresh.append(name)
                self._refs[name] = 1
                continue
            announce(fresh, after, position)
            self.hold((name,))
            fresh, after = [], name
        announce(fresh, after, len(names))

    def release(self, names: Sequence[int], private: int) -> None:
        """Give back blocks; content stays resident until evicted, the end of the prefix first."""
        self._private -= private
        for name in reversed(names):
            self._refs[name] -= 1
            if self._refs[name] == 0:
                self._idle[name] = None

    def clear(self) -> bool:
        """Forget all content. False, and nothing done, while any of it is held."""
        if len(self._refs) != len(self._idle):
            return False
        self._refs.clear()
        self._idle.clear()
        self._events.append(KvCleared())
        return True

    def take_events(self) -> list[KvEvent]:
        """What happened since the last call, in order."""
        events, self._events = self._events, []
        return events
