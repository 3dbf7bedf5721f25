"""The store in memory: for one process, for tests, and as the meaning that Redis is held to.

Bounded by bytes of encoded records: the one longest untouched goes first.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

from sessions.records import Kind, SessionRecord, SessionSeen, touched
from sessions.store import Write, checked

T = TypeVar("T")
Key = tuple[str, str, str]

_SESSION = Kind("session", SessionRecord)
_OVERHEAD = 200  # bytes of a key and its slots, roughly


class _Entry:
    """A list of encoded records; a single record is a list of one."""

    __slots__ = ("expires", "size", "values")

    def __init__(self, values: list[bytes], expires: float) -> None:
        self.values = values
        self.expires = expires
        self.size = _OVERHEAD + sum(len(value) for value in values)


class MemoryStore:
    """`clock` gives seconds and only has to go forward."""

    def __init__(
        self, *, max_bytes: int = 256 * 2**20, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._clock = clock
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()

    async def touch_session(self, seen: SessionSeen, ttl: float) -> SessionRecord:
        key = (_SESSION.name, seen.owner, seen.key)
        entry = self._find(key)
        record = touched(_SESSION.decode(entry.values[0]) if entry else None, seen)
        self._set(key, [_SESSION.encode(record)], checked(ttl))
        return record

    async def session(self, owner: str, key: str) -> SessionRecord | None:
        return (await self.get(_SESSION, owner, key))[0]

    async def end_session(self, owner: str, key: str) -> bool:
        return await self.delete(_SESSION, owner, key) > 0

    async def put(self, *writes: Write) -> bool:
        encoded = [(w, w.kind.encode(w.record), checked(w.ttl)) for w in writes]
        for w, value, ttl in encoded:
            self._set((w.kind.name, w.owner, w.name), [value], ttl)
        return True

    async def get(
        self, kind: Kind[T], owner: str, *ids: str, renew: float | None = None
    ) -> list[T | None]:
        entries = [self._find((kind.name, owner, name)) for name in ids]
        if renew is not None:
            deadline = self._clock() + checked(renew)
            for entry in filter(None, entries):
                entry.expires = deadline
        return kind.decode_each([entry.values[0] if entry else None for entry in entries])

    async def delete(self, kind: Kind[T], owner: str, *ids: str) -> int:
        keys = {(kind.name, owner, name) for name in ids}
        return sum(self._find(key) is not None and self._drop(key) for key in keys)

    async def append(
        self, kind: Kind[T], owner: str, name: str, records: Sequence[T], *, ttl: float, keep: int
    ) -> bool:
        if not records:
            return True
        key = (kind.name, owner, name)
        entry = self._find(key)
        before = entry.values if entry else []
        after = [*before, *(kind.encode(record) for record in records)]
        self._set(key, after[-keep:], checked(ttl))
        return True

    async def items(self, kind: Kind[T], owner: str, name: str) -> list[T]:
        entry = self._find((kind.name, owner, name))
        return kind.decode_list(entry.values) if entry else []

    async def ping(self) -> None:
        pass

    async def close(self) -> None:
        self._entries.clear()
        self.bytes = 0

    def _find(self, key: Key) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires <= self._clock():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry

    def _set(self, key: Key, values: list[bytes], ttl: float) -> None:
        if key in self._entries:
            self._drop(key)
        made = self._entries[key] = _Entry(values, self._clock() + ttl)
        self.bytes += made.size
        while self.bytes > self.max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> bool:
        self.bytes -= self._entries.pop(key).size
        return True
