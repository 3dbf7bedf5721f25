"""Who may read which rows, for how long, and who must give way when the store is full."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from toolruns.rows.handles import Book, Record, UnknownHandleError, is_handle, new_handle
from toolruns.rows.store import RowStore, StoreFullError

LONGEST_LIFE = 2 * 3600.0


class Keeper:
    """Book and store together; every use of a handle goes through `check`.

    `wall` is the clock of lifetimes, in seconds since the epoch.
    """

    def __init__(
        self,
        book: Book,
        store: RowStore,
        *,
        node: str = "",
        holder: str = "",
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.holder = holder
        self._book = book
        self._node = node
        self._wall = wall

    async def create(
        self, owner: str, tool: str, ttl: float, *, call_id: str = "", arguments: Any = None
    ) -> Record:
        """A new handle. The owner's oldest ended ones give way; StoreFullError if that is not
        enough.
        """
        await self._make_room(owner)
        now = self._wall()
        record = Record(
            new_handle(),
            owner,
            tool,
            created=now,
            used=now,
            expires=now + ttl,
            dies=now + max(ttl, LONGEST_LIFE),
            node=self._node,
            holder=self.holder,
            call_id=call_id,
            arguments=arguments or {},
        )
        await self._book.put(record)
        return record

    async def check(self, handle: object, owner: str, ttl: float | None = None) -> Record:
        """The record, if this owner may use it now. Raises UnknownHandleError otherwise.

        With `ttl` the use prolongs its life.
        """
        record = await self._book.get(str(handle)) if is_handle(handle) else None
        now = self._wall()
        if record is None or record.owner != owner or record.expires <= now:
            raise UnknownHandleError
        if ttl is not None:
            record.used = now
            record.expires = min(now + ttl, record.dies)
            await self._book.put(record)
        return record

    async def known(self, handle: object) -> Record | None:
        """The record of whoever owns it, while it lives: for those who run the server."""
        record = await self._book.get(str(handle)) if is_handle(handle) else None
        return record if record is not None and record.expires > self._wall() else None

    async def all(self) -> list[Record]:
        """Every record that lives, of all owners."""
        records = await self._book.expired(float("inf"))
        return [record for record in records if record.owner and record.expires > self._wall()]

    async def update(self, record: Record) -> None:
        await self._book.put(record)

    async def close(self, record: Record) -> None:
        await self._book.remove(record.handle)
        await asyncio.to_thread(self.store.drop, record.handle)

    async def sweep(self) -> list[str]:
        """Drop what expired; gives the handles dropped."""
        gone = await self._book.expired(self._wall())
        for record in gone:
            await self.close(record)
        return [record.handle for record in gone]

    async def _make_room(self, owner: str) -> None:
        await self.sweep()
        kept = sorted(await self._book.of_owner(owner), key=lambda record: record.used)
        total = sum(record.bytes for record in kept)
        limit = self.store.limits.owner_bytes
        for record in kept:
            if total < limit:
                return
            if record.status == "ended":
                await self.close(record)
                total -= record.bytes
        if total >= limit:
            message = f"{total // 1024**2} MB are kept for you in running calls; close some handles"
            raise StoreFullError(message)
