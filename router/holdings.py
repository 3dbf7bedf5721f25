"""Holdings: what one engine's cache holds, kept beside the engine, by its names and by ours.

It turns the engine's events into ones that need no hashing (`KvHeld`) and is the snapshot that a
router asks for when its view has a gap. A block whose parent was never seen has no name of ours:
it and its children are left out and counted, for credit that is not given costs a prefill, and
credit that is wrong costs every turn that follows it.
"""

from __future__ import annotations

from collections.abc import Iterable

from router.blocks import follow, root
from router.kv import KvCleared, KvEvent, KvHeld, KvRemoved, KvStored


class Holdings:
    """`ours` maps the engine's hash of each block held to our hash of it."""

    def __init__(self) -> None:
        self.ours: dict[int, int] = {}
        self.orphans = 0

    def take(self, events: Iterable[KvEvent]) -> list[KvEvent]:
        """Follow the events; gives those that a router should hear, with our names."""
        told: list[KvEvent] = []
        for event in events:
            match event:
                case KvStored():
                    told += self._store(event)
                case KvHeld(block_hashes=theirs, ours=ours):
                    self.ours.update(zip(theirs, ours, strict=True))
                    told.append(event)
                case KvRemoved(block_hashes=gone):
                    known = [block for block in gone if self.ours.pop(block, None) is not None]
                    if known:
                        told.append(KvRemoved(known))
                case KvCleared():
                    self.ours.clear()
                    told.append(event)
        return told

    def parts(self, size: int) -> list[dict[int, int]]:
        """All of it, in parts of at most `size` blocks; an empty cache is one empty part."""
        pairs = list(self.ours.items())
        return [dict(pairs[at : at + size]) for at in range(0, len(pairs), size)] or [{}]

    def _store(self, event: KvStored) -> list[KvEvent]:
        if event.parent is None:
            parent: int | None = root(event.salt, event.lora)
        else:
            parent = self.ours.get(event.parent)
        theirs = event.block_hashes
        if parent is None or len(event.token_ids) != len(theirs) * event.block_size:
            self.orphans += len(theirs)
            return []
        ours = follow(parent, event.token_ids, event.block_size, event.extras)
        self.ours.update(zip(theirs, ours, strict=True))
        return [KvHeld(theirs, ours)]
