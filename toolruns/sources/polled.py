"""A table that grows, read as a stream: what came behind the cursor, again and again.

The statement has two named places, `cursor` and `rows`, and orders by the cursor's column:
`SELECT * FROM events WHERE id > :cursor ORDER BY id LIMIT :rows`. The last row's key is the cursor,
so a later run goes on where this one stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from toolruns.signals import Chunk
from toolruns.sources.source import Answer, InThread, SourceError
from toolruns.sources.source import Cursor as Blocking

MakeQuery = Callable[[dict[str, Any]], Blocking]


class Polled:
    """A Source without an end. `query` makes a Cursor of the filled statement; `key` names the
    column that grows; `start` is the first cursor's value, whose type later cursors take.
    """

    def __init__(
        self,
        query: MakeQuery,
        key: str,
        *,
        cursor: str = "",
        start: int | str = 0,
        pause: float = 0.25,
    ) -> None:
        self._query = query
        self._key = key
        self._pause = pause
        self._at: int | str = type(start)(cursor) if cursor else start
        self._running: InThread | None = None

    async def open(self) -> None:
        """Nothing is held open between two looks."""

    async def read(self, rows: int) -> Answer:
        while True:
            answer = await self._look(rows)
            if isinstance(answer, Chunk) and answer.batch.num_rows:
                return self._placed(answer)
            await asyncio.sleep(self._pause)

    async def close(self) -> None:
        if self._running is not None:
            await self._running.close()

    async def _look(self, rows: int) -> Answer:
        self._running = InThread(self._query({"cursor": self._at, "rows": rows}))
        try:
            await self._running.open()
            return await self._running.read(rows)
        finally:
            await self._running.close()

    def _placed(self, answer: Chunk) -> Chunk:
        index = answer.batch.schema.get_field_index(self._key)
        if index < 0:
            message = f"the statement gives no column {self._key!r}, which is the cursor"
            raise SourceError(message)
        value = answer.batch.column(index)[answer.batch.num_rows - 1].as_py()
        self._at = type(self._at)(value)
        return Chunk(answer.batch, answer.size, pages=0, cursor=str(self._at))
