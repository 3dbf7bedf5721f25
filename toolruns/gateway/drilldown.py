"""The calls that look into kept rows; each is an event of the trajectory's record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from toolruns.gateway.arguments import QueryArguments, RowsArguments, read
from toolruns.gateway.caller import Caller
from toolruns.rows.drill import Page
from toolruns.rows.handles import Record
from toolruns.rows.keeper import Keeper
from toolruns.rows.sandbox import Sandbox
from toolruns.signals import Note
from toolruns.trajectory import Entry


class Drilldown:
    """Looks into rows for their owner; every use prolongs their life by the tool's `ttls`."""

    def __init__(self, keeper: Keeper, sandbox: Sandbox, ttls: Mapping[str, float]) -> None:
        self._keeper = keeper
        self._sandbox = sandbox
        self._ttls = ttls

    async def rows(self, arguments: dict[str, Any], caller: Caller) -> str:
        """`stream_rows`. Raises InvalidRequestError, UnknownHandleError."""
        asked = read(arguments, RowsArguments)
        record = await self.use(asked.handle, caller)
        found = await self._sandbox.page(
            record.handle,
            where=asked.where,
            columns=asked.columns,
            order_by=asked.order_by,
            offset=asked.offset,
            limit=asked.limit,
        )
        return await self._told(record, "rows", found)

    async def query(self, arguments: dict[str, Any], caller: Caller) -> str:
        """`stream_query`. Raises InvalidRequestError, UnknownHandleError."""
        asked = read(arguments, QueryArguments)
        record = await self.use(asked.handle, caller)
        return await self._told(
            record, "query", await self._sandbox.query(record.handle, asked.sql)
        )

    async def events(self, record: Record) -> list[Entry]:
        return await asyncio.to_thread(self._keeper.store.events, record.handle)

    async def page(self, record: Record, offset: int, limit: int) -> Page:
        return await self._sandbox.page(record.handle, offset=offset, limit=limit)

    async def use(self, handle: str, caller: Caller) -> Record:
        """The record of a handle that this caller owns; its life is prolonged."""
        record = await self._keeper.check(handle, caller.principal)
        return await self._keeper.check(handle, caller.principal, self._ttls.get(record.tool))

    async def note(self, record: Record, note: Note) -> None:
        """Append an event from outside the run to its record."""
        t_ms = (time.time() - record.created) * 1000
        await asyncio.to_thread(self._keeper.store.note, record.handle, note, t_ms)

    async def close(self) -> None:
        await self._sandbox.close()

    async def _told(self, record: Record, kind: str, found: Page) -> str:
        await self.note(record, Note("drilldown.called", {"kind": kind, "rows": len(found.rows)}))
        return found.text()
