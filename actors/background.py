"""Background responses: turns that run on without their client, found again by their id.

The response's record in the store is the truth that every ingress sees. The ingress that runs a
turn says every BEAT seconds that it lives and looks whether the record was cancelled or deleted
meanwhile; a record whose runner fell silent is shown as failed, for nothing will ever finish it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import Any, Literal

from msgspec.structs import replace

from actors.event_log import EventLog
from actors.flights import Flight
from actors.intake import Intake, Read
from actors.response_store import RUNNING, ResponseStore
from protocols import ids
from protocols.bodies import invalid
from protocols.responses import stored
from sessions.records import StoredResponse
from turns.errors import TreadleError
from turns.reply import Reply

Ending = Literal["cancelled", "deleted"]
BEAT = 5.0
SILENT = 4 * BEAT
"""Seconds after which a runner that said nothing is taken for dead."""

KEPT = 16 * 2**20
"""Bytes of events of ended responses that stay readable, in memory."""


LOST = {"code": "server_error", "message": "the server that ran this response was lost"}


class Run:
    """One background turn on this ingress. `ending` is why it is ended before its time."""

    def __init__(self, read: Read, log: EventLog) -> None:
        self.read = read
        self.log = log
        self.flight: Flight | None = None
        self.task: asyncio.Task[None] | None = None
        self.ending: Ending | None = None
        self.body = read.kept(None)

    @property
    def id(self) -> str:
        return ids.response(self.read.turn.id)


class Background:
    """One per ingress."""

    def __init__(self, intake: Intake, *, beat: float = BEAT) -> None:
        self._intake = intake
        self._store: ResponseStore = intake.responses
        self._beat = beat
        self._running: dict[str, Run] = {}
        self._ended: OrderedDict[str, EventLog] = OrderedDict()
        self._beating: asyncio.Task[None] | None = None

    async def begin(self, read: Read) -> Run:
        """Put the turn in the air and let it go; its `body` is queued. Raises TreadleError."""
        if not read.turn.store:
            raise invalid("background", "A background response must be stored; leave `store` out")
        run = Run(read, EventLog(read.encoder()))
        owner = read.asked.owner
        await self._store.available()
        await self._intake.keep(read, run.body)
        await self._store.beat(owner, run.id, SILENT)
        try:
            run.flight = await self._intake.begin(read, run.log)
        except TreadleError:
            await self._store.delete(owner, run.id)
            raise
        run.log.landing = lambda reply: self._landed(run, reply)
        self._running[run.id] = run
        run.task = asyncio.ensure_future(self._fly(run))
        if self._beating is None:
            self._beating = asyncio.ensure_future(self._beat_on())
        return run

    def log(self, owner: str, response_id: str) -> EventLog | None:
        """The events of a response that this ingress ran, while they are kept."""
        run = self._running.get(response_id)
        if run is not None:
            return run.log if run.read.asked.owner == owner else None
        return self._ended.get(f"{owner}/{response_id}")

    async def get(self, owner: str, response_id: str) -> StoredResponse:
        """The record; one that nobody runs any more has failed. Raises NotFoundError."""
        record = await self._store.get(owner, response_id)
        if record.status in RUNNING and not await self._store.beating(owner, response_id):
            record = restated(record, "failed", error=LOST)
            await self._store.put(owner, record)
        return record

    async def cancel(self, owner: str, response_id: str) -> bytes:
        """Cancel a response wherever it runs; gives its body. One that is over stays as it is."""
        record = await self.get(owner, response_id)
        if not stored.is_background(record.body):
            raise invalid("response_id", "Only a background response can be cancelled")
        if record.status not in RUNNING:
            return record.body
        run = self._running.get(response_id)
        if run is not None and run.task is not None:
            self._stop(run, "cancelled")
            await asyncio.wait([run.task])
            return (await self._store.get(owner, response_id)).body
        record = restated(record, "cancelled")
        await self._store.put(owner, record)  # its runner reads this at its next beat
        return record.body

    async def delete(self, owner: str, response_id: str) -> None:
        """Forget a response; what still runs of it is ended. Raises NotFoundError."""
        await self._store.delete(owner, response_id)
        run = self._running.get(response_id)
        if run is not None:
            self._stop(run, "deleted")
        self._ended.pop(f"{owner}/{response_id}", None)

    async def settled(self) -> None:
        """Wait until every turn that runs here is over."""
        while tasks := [run.task for run in self._running.values() if run.task is not None]:
            await asyncio.wait(tasks)

    async def stop(self) -> None:
        """End what runs here; each is kept as cancelled."""
        for run in list(self._running.values()):
            self._stop(run, "cancelled")
        await self.settled()
        if self._beating is not None:
            self._beating.cancel()

    def _stop(self, run: Run, ending: Ending) -> None:
        run.ending = ending
        if run.flight is not None:
            self._intake.ingress.leave(run.flight)
        run.log.end()

    async def _fly(self, run: Run) -> None:
        log = run.log
        try:
            news: list[asyncio.Future[Any]] = [log.first, log.ended]
            await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)
            if not log.ended.done():
                await self._intake.keep(run.read, stored.with_status(run.body, "in_progress"))
            reply = await log.land()
            if run.ending == "cancelled":
                body = stored.with_status(run.read.kept(reply), "cancelled")
                await self._intake.keep(run.read, body)
        except Exception as error:  # noqa: BLE001 - nobody else would hear of it
            self._intake.ingress.defect(run.read.turn.id, error)
        finally:
            log.close()
            del self._running[run.id]
            self._remember(run)

    async def _landed(self, run: Run, reply: Reply) -> None:
        """Keep the reply, unless another ingress was told to cancel or forget it meanwhile."""
        with contextlib.suppress(TreadleError):
            record = await self._store.get(run.read.asked.owner, run.id)
            if record.status in RUNNING:
                await self._intake.keep(run.read, run.read.kept(reply))

    def _remember(self, run: Run) -> None:
        self._ended[f"{run.read.asked.owner}/{run.id}"] = run.log
        while sum(log.size for log in self._ended.values()) > KEPT:
            self._ended.popitem(last=False)

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(self._beat)
            for run in list(self._running.values()):
                await self._look(run)

    async def _look(self, run: Run) -> None:
        owner = run.read.asked.owner
        try:
            await self._store.beat(owner, run.id, SILENT)
            record = await self._store.get(owner, run.id)
        except TreadleError as error:
            if error.kind == "not_found":
                self._stop(run, "deleted")
            return
        if record.status == "cancelled":
            self._stop(run, "cancelled")


def restated(record: StoredResponse, status: stored.Status, **fields: Any) -> StoredResponse:
    """The record under another status."""
    return replace(record, status=status, body=stored.with_status(record.body, status, **fields))
