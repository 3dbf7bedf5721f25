"""Tells the router what an engine's cache holds: numbered batches, and a snapshot when asked.

One message is under way at a time, so batches arrive in their order; what happens meanwhile goes
with the next one. A batch that was not taken, for whatever reason, is made up for by a snapshot:
the router then knows all again, whatever it had missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from router.holdings import Holdings
from router.kv import KvEvent

log = logging.getLogger(__name__)

EVERY = 0.1
"""Seconds for which KV events are collected into one message: blocks fill at every step."""

PART = 100_000
"""Blocks in one message of a snapshot, 1.8 MB: Serve takes messages of 4 MiB."""

MOST = 100_000
"""Events that wait at most; past it they are dropped and a snapshot is owed."""


class KvReporter(Protocol):
    """The router as a replica sees it."""

    async def kv(self, model: str, replica: str, number: int, events: Sequence[KvEvent]) -> bool:
        """Take a batch; False asks for a snapshot."""
        ...

    async def restock(
        self,
        model: str,
        replica: str,
        number: int,
        holdings: Mapping[int, int],
        *,
        first: bool,
        last: bool,
    ) -> bool: ...


class KvTelling:
    """One per engine replica. `acknowledged` is the number of the last batch that was taken."""

    def __init__(self, reporter: KvReporter, model: str, replica: str) -> None:
        self._reporter = reporter
        self._names = (model, replica)
        self.holdings = Holdings()
        self.acknowledged = -1
        self.owes = False
        self._number = -1
        self._pending: list[KvEvent] = []
        self._due: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._stopped = False

    def take(self, events: Sequence[KvEvent]) -> None:
        """What the engine says; never waits."""
        if self._stopped:
            return
        self._pending += self.holdings.take(events)
        if len(self._pending) > MOST:
            self._pending.clear()
            self.owes = True
        if self._due is None and self._sending is None and (self._pending or self.owes):
            self._due = asyncio.get_running_loop().call_later(EVERY, self._start)

    def owe(self) -> None:
        """The router wants a snapshot."""
        self.owes = True
        if self._due is None and self._sending is None and not self._stopped:
            self._start()

    async def stop(self) -> None:
        """Nothing is told any more; what the engine still says is forgotten."""
        self._stopped = True
        if self._due is not None:
            self._due.cancel()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _start(self) -> None:
        self._due = None
        self._sending = asyncio.ensure_future(self._send())

    async def _send(self) -> None:
        try:
            await (self._snapshot() if self.owes else self._batch())
        except Exception as error:  # noqa: BLE001 - the router is away; the next report asks again
            self.owes = True
            log.warning("the router did not take KV events: %s", type(error).__name__)
        else:
            if (self.owes or self._pending) and not self._stopped:
                self._due = asyncio.get_running_loop().call_later(EVERY, self._start)
        finally:
            self._sending = None

    async def _batch(self) -> None:
        events, self._pending = self._pending, []
        if not events:
            return
        self._number += 1
        number = self._number
        if await self._reporter.kv(*self._names, number, events):
            self.acknowledged = number
        else:
            self.owes = True

    async def _snapshot(self) -> None:
        self._pending = []  # the holdings have it already
        self._number += 1
        number, parts = self._number, self.holdings.parts(PART)
        self.owes = False
        for at, part in enumerate(parts):
            await self._reporter.restock(
                *self._names, number, part, first=not at, last=at + 1 == len(parts)
            )
        self.acknowledged = number
