"""The interface of a store. One implementation a file beside this one; nothing above knows which.

Every record lives for `ttl` seconds (above 0) and is found under (kind, owner, name). A kind holds
either single records (`put`, `get`) or lists (`append`, `items`), never both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from sessions.records import Kind, SessionRecord, SessionSeen

T = TypeVar("T")
FOREVER = float("inf")
"""The TTL, for `put` and `append`, of what must not be forgotten."""


class Write(Struct, frozen=True):
    """One record to put; make it with `write`, which checks that the record is of its kind."""

    kind: Kind[Any]
    owner: str
    name: str
    record: Any
    ttl: float


def write(kind: Kind[T], owner: str, name: str, record: T, *, ttl: float) -> Write:
    return Write(kind, owner, name, record, ttl)


def checked(ttl: float) -> float:
    """The TTL, if it is one."""
    if not ttl > 0:
        raise ValueError(f"a record must live for more than 0 seconds, not {ttl}")
    return ttl


class Store(Protocol):
    """Every call is one round trip. UnavailableError when the store cannot be reached; RecordError
    for a record that cannot be read as its kind, from `get` and `items` with all the others in its
    `rest`; ValueError for a TTL of 0 or less.
    """

    async def touch_session(self, seen: SessionSeen, ttl: float) -> SessionRecord:
        """Make the session or bring it up to date (`records.touched`), atomically."""
        ...

    async def session(self, owner: str, key: str) -> SessionRecord | None: ...

    async def end_session(self, owner: str, key: str) -> bool:
        """Forget the session record; says whether there was one."""
        ...

    async def put(self, *writes: Write) -> bool:
        """Put records, over those of the same name; says whether they are written, which only a
        store that may be away answers with no.
        """
        ...

    async def get(
        self, kind: Kind[T], owner: str, *ids: str, renew: float | None = None
    ) -> list[T | None]:
        """Records in the order of `ids`; those found live `renew` seconds from now, if given."""
        ...

    async def delete(self, kind: Kind[T], owner: str, *ids: str) -> int:
        """Delete records or lists; says how many there were."""
        ...

    async def append(
        self, kind: Kind[T], owner: str, name: str, records: Sequence[T], *, ttl: float, keep: int
    ) -> bool:
        """Add to the end of a list, of which the last `keep` records stay; the list lives on for
        `ttl` seconds from now. Nothing to add changes nothing. Says what `put` says.
        """
        ...

    async def items(self, kind: Kind[T], owner: str, name: str) -> list[T]:
        """The list, oldest first; empty when there is none."""
        ...

    async def ping(self) -> None:
        """Raise UnavailableError when the store cannot be reached."""
        ...

    async def close(self) -> None: ...
