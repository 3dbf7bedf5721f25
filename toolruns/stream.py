"""Streaming tools from Python: watch a source's synopses, stop it, read what was kept.

async with stream_tool(source, until="count >= 30") as stream:
    async for synopsis in stream:
        if synopsis["verdict"] == "converged":
            stream.stop("enough")
stream.result["reason"]
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from toolruns.budget import Budget, grant
from toolruns.contract import Contract
from toolruns.endings import Ending
from toolruns.machine import ToolRun
from toolruns.predicate.parse import parse
from toolruns.rows.handles import new_handle
from toolruns.rows.store import Writer
from toolruns.runner import LiveRun, Outcome
from toolruns.signals import Continue
from toolruns.sources.source import Source
from toolruns.trajectory import Entry


class Stream:
    """One run as an async iterator of synopses (JSON objects); `result` is the last one."""

    def __init__(self, budget: Budget) -> None:
        self.result: dict[str, Any] = {}
        self.entries: list[Entry] = []
        self._budget = budget
        self._shown: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._live: LiveRun | None = None

    def attach(self, live: LiveRun) -> None:
        self._live = live

    def stop(self, note: str = "") -> None:
        """End the run; the iteration ends with it."""
        if self._live is not None:
            self._live.stop(Ending.MODEL_STOPPED, note)

    def shown(self, snapshot: dict[str, Any]) -> None:
        self._shown.put_nowait(snapshot)

    def noted(self, entry: Entry) -> None:
        self.entries.append(entry)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> dict[str, Any]:
        snapshot = await self._shown.get()
        if snapshot is None:
            self._shown.put_nowait(None)
            raise StopAsyncIteration
        return snapshot

    async def follow(self, live: LiveRun) -> None:
        """See the run through all its legs: nobody has to be asked before it may go on."""
        outcome = Outcome({})
        try:
            live.start()
            while outcome.ending is None:
                outcome = await live.outcome()
                self.result = outcome.snapshot
                if outcome.ending is None:
                    live.go_on(Continue(self._budget))
        finally:
            self._shown.put_nowait(None)


@asynccontextmanager
async def stream_tool(
    source: Source,
    *,
    until: str | None = None,
    budget: Budget | None = None,
    contract: Contract | None = None,
    writer: Writer | None = None,
) -> AsyncIterator[Stream]:
    """Run a source under a predicate and a budget. Leaving the block ends the run.

    Raises PredicateError before the source is opened if `until` cannot be read.
    """
    contract = contract or Contract("chunked")
    budget = budget or grant(contract.defaults)
    run = ToolRun(new_handle(), contract, budget, until=parse(until) if until else None)
    stream = Stream(budget)
    live = LiveRun(run, source, writer=writer, watcher=stream)
    stream.attach(live)
    following = asyncio.create_task(stream.follow(live))
    try:
        yield stream
    finally:
        stream.stop("left")
        await following
        await live.ended()
