"""A source that is an async generator of rows, lists of rows or Arrow batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pyarrow as pa

from toolruns.signals import Chunk, Exhausted
from toolruns.sources.records import Records
from toolruns.sources.source import Answer

LINGER = 0.05
"""Seconds to wait for more rows once there is one: slow rows are shown, fast ones are gathered."""


class GeneratorSource:
    """Gathers rows up to the pull. A batch or list that the generator yields is never split."""

    def __init__(self, make: Callable[[], AsyncIterator[Any]]) -> None:
        self._make = make
        self._rows: AsyncIterator[Any] | None = None
        self._coming: asyncio.Task[Any] | None = None
        self._records = Records()

    async def open(self) -> None:
        self._rows = self._make()

    async def read(self, rows: int) -> Answer:
        gathered: list[Any] = []
        over = False
        while len(gathered) < rows and not over:
            item = await self._next(wait=not gathered)
            if item is _LATER:
                break
            if item is _OVER:
                over = True
            elif isinstance(item, pa.RecordBatch | pa.Table):
                self._keep(item) if gathered else None
                if gathered:
                    break
                return _arrow(item)
            else:
                gathered += item if isinstance(item, list) else [item]
        if not gathered:
            return Exhausted()
        batch = self._records.batch(gathered)
        return Chunk(batch, batch.nbytes, last=over)

    async def close(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await self._coming
        closing = getattr(self._rows, "aclose", None)
        if closing is not None:
            with contextlib.suppress(RuntimeError):  # still running: its cancelled read closes it
                await closing()

    async def _next(self, *, wait: bool) -> Any:
        """The next item; `_LATER` when it does not come soon and `wait` is not set."""
        if self._rows is None:
            return _OVER
        if self._coming is None:
            self._coming = asyncio.ensure_future(anext(self._rows, _OVER))
        done, _ = await asyncio.wait({self._coming}, timeout=None if wait else LINGER)
        if not done:
            return _LATER
        coming, self._coming = self._coming, None
        return coming.result()

    def _keep(self, item: Any) -> None:
        """Put an item back: the next read finds it first."""
        kept: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        kept.set_result(item)
        self._coming = kept  # type: ignore[assignment] # a finished future reads like a task


_LATER = object()
_OVER = object()


def _arrow(item: Any) -> Chunk:
    batch = item
    if isinstance(item, pa.Table):
        batches = item.combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], item.schema)
    return Chunk(batch, batch.nbytes)
