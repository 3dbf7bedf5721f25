"""Run a source as the gateway does, and say what came of it."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.toolruns.streams import budget as limits
from toolruns.contract import Cadence, Contract, Mode
from toolruns.endings import Ending
from toolruns.machine import ToolRun
from toolruns.predicate.parse import parse
from toolruns.rows.handles import new_handle
from toolruns.runner import LiveRun
from toolruns.sources.source import Source

LONG = 30.0


class Watching:
    """A source whose reads and closing are counted at the source itself."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.reads = 0
        self.rows = 0
        self.opened = self.closed = 0

    async def open(self) -> None:
        self.opened += 1
        await self._source.open()

    async def read(self, rows: int) -> Any:
        self.reads += 1
        answer = await self._source.read(rows)
        self.rows += answer.batch.num_rows if hasattr(answer, "batch") else 0
        return answer

    async def close(self) -> None:
        self.closed += 1
        await self._source.close()


async def play(
    source: Source,
    until: str | None = None,
    *,
    mode: Mode = "chunked",
    cancel_after: float | None = None,
    **changes: Any,
) -> tuple[LiveRun, dict[str, Any], Ending]:
    """The run after its end, its last snapshot and its ending."""
    contract = Contract(mode, synopsis=Cadence(every_chunks=4, every_seconds=1.0))
    run = ToolRun(new_handle(), contract, limits(**changes), until=parse(until) if until else None)
    live = LiveRun(run, source)
    live.start()
    if cancel_after is not None:
        asyncio.get_running_loop().call_later(cancel_after, live.stop, Ending.CANCELLED)
    async with asyncio.timeout(LONG):
        outcome = await live.outcome()
        await live.ended()
    assert outcome.ending is not None
    return live, outcome.snapshot, outcome.ending


async def read_all(source: Source, rows: int = 64) -> list[dict[str, Any]]:
    """Every row of a source that ends."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(LONG):
        try:
            await source.open()
            last = False
            while not last:
                answer = await source.read(rows)
                found += answer.batch.to_pylist() if hasattr(answer, "batch") else []
                last = getattr(answer, "last", True)
        finally:
            await source.close()
    return found
