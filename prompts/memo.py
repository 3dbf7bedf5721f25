"""A bounded memo: the least recently used entries leave when its weight is over the bound."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Memo(Generic[Key, Value]):
    """Maps keys to values, `bound` in whatever unit the callers weigh entries in.

    Safe from several threads. An entry heavier than the bound is not kept.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._weight = 0
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()
        self.hits = 0
        self.misses = 0

    def get(self, key: Key) -> Value | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Key, value: Value, weight: int = 1) -> None:
        if weight > self._bound:
            return
        with self._lock:
            old = self._entries.pop(key, None)
            self._weight += weight - (old[1] if old else 0)
            self._entries[key] = (value, weight)
            while self._weight > self._bound:
                _, (_, gone) = self._entries.popitem(last=False)
                self._weight -= gone
