"""A run at work: carries out what the machine decides, in a task of its own.

The task outlives the call that began it, because a yielded run waits for `stream_continue`. All
signals go through one place, one at a time, so the machine never sees two at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Struct

from toolruns.endings import Ending
from toolruns.machine import HANDLERS, ToolRun
from toolruns.rows.store import Reference, StoreFullError, Writer
from toolruns.signals import (
    Action,
    Chunk,
    Close,
    Continue,
    Decide,
    Decided,
    Failed,
    Keep,
    Note,
    Pull,
    Return,
    Show,
    Signal,
    Stop,
    Tick,
    Yield,
)
from toolruns.sources.source import Source, SourceError
from toolruns.trajectory import Entry, Recorder

BIG = 2048
"""Rows from which a chunk is worked on in a thread, so that the loop stays free."""
LEAVE_WITHIN = 0.05


class Outcome(Struct):
    """What a leg came to: a `snapshot`, and the `ending` unless the run yielded."""

    snapshot: dict[str, Any]
    ending: Ending | None = None


class Watcher(Protocol):
    """Who follows a run. Called on the loop; must not block and must not raise."""

    def shown(self, snapshot: dict[str, Any]) -> None: ...

    def noted(self, entry: Entry) -> None: ...


Asker = Callable[[dict[str, Any]], Awaitable[Decided]]
"""Asks the model that made the call; never raises."""


class LiveRun:
    """One run and its source. `start` it, then await `outcome` for every leg.

    Without a `writer` rows are not kept. `clock` must be the loop's monotonic one.
    """

    def __init__(
        self,
        run: ToolRun,
        source: Source,
        *,
        writer: Writer | None = None,
        watcher: Watcher | None = None,
        ask: Asker | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = run
        self.closed_in: float | None = None
        self.final: Outcome | None = None
        self._source = source
        self._writer = writer
        self._watcher = watcher
        self._ask = ask
        self._clock = clock
        self._recorder = Recorder(run.handle, clock())
        self._mail: asyncio.Queue[Signal] = asyncio.Queue()
        self._reading: asyncio.Task[Signal] | None = None
        self._letter: asyncio.Task[Signal] | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._opened = False
        self._kept: Reference | None = None
        self._outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._life: asyncio.Task[None] | None = None

    @property
    def kept_bytes(self) -> int:
        """Bytes of rows in the store, as Arrow counts them."""
        return self._writer.bytes if self._writer is not None else 0

    def watch(self, watcher: Watcher) -> None:
        """Let `watcher` follow from here on, in place of who did before."""
        self._watcher = watcher

    def start(self) -> None:
        self._life = asyncio.create_task(self._live(), name=f"run {self.run.handle}")

    async def outcome(self) -> Outcome:
        """Wait for this leg's end. Whoever waits may go away; the run goes on regardless."""
        return await asyncio.shield(self._outcome)

    def stop(self, ending: Ending, note: str = "") -> None:
        """End the run from outside; without effect once it ended."""
        self._mail.put_nowait(Stop(ending, note))

    def go_on(self, signal: Continue) -> None:
        """Begin the next leg of a yielded run; await `outcome` again."""
        self._outcome = asyncio.get_running_loop().create_future()
        self._mail.put_nowait(signal)

    async def ended(self) -> None:
        """Wait until nothing of the run is left."""
        if self._life is not None:
            await asyncio.shield(self._life)

    async def _live(self) -> None:
        try:
            actions = self.run.open(self._clock())
            while True:
                await self._carry_out(actions)
                if self.run.state == "ended":
                    return
                signal = await self._next()
                if type(signal) not in self._expected():
                    continue  # came too late: a decision after the end of a leg, a second continue
                actions = await self._feed(self._fitting(signal))
        finally:
            await self._leave()

    def _expected(self) -> set[type[Signal]]:
        return {kind for state, kind in HANDLERS if state == self.run.state}

    def _fitting(self, signal: Signal) -> Signal:
        """The signal, unless its rows do not fit the store: then they were never seen, because
        what the model reads of must be there to look into.
        """
        if isinstance(signal, Chunk) and self._writer is not None:
            try:
                self._writer.check(signal.batch)
            except StoreFullError as error:
                return Stop(Ending.STORE_LIMIT, str(error))
        return signal

    async def _feed(self, signal: Signal) -> list[Action]:
        now = self._clock()
        if isinstance(signal, Chunk) and signal.batch.num_rows >= BIG:
            return await asyncio.to_thread(self.run.feed, signal, now)
        return self.run.feed(signal, now)

    async def _next(self) -> Signal:
        """Whatever comes first: somebody's word, the source's answer, or the run's alarm."""
        if self._letter is None:
            self._letter = asyncio.create_task(self._mail.get())
        waiting: set[asyncio.Task[Signal]] = {self._letter}
        if self._reading is not None and self.run.state == "running":
            waiting.add(self._reading)
        pause = self.run.wake_at() - self._clock()
        done, _ = await asyncio.wait(
            waiting, timeout=max(0.0, pause), return_when=asyncio.FIRST_COMPLETED
        )
        if self._letter in done:
            letter, self._letter = self._letter, None
            return letter.result()
        if self._reading in done and self._reading is not None:
            reading, self._reading = self._reading, None
            return reading.result()
        return Tick()

    async def _read(self, rows: int) -> Signal:
        try:
            if not self._opened:
                self._opened = True
                await self._source.open()
            return await self._source.read(rows)
        except SourceError as error:
            return Failed(str(error)[:500])
        except Exception as error:  # noqa: BLE001 (whatever a driver raises ends this run alone)
            return Failed(f"the source failed: {type(error).__name__}")

    async def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Pull(rows):
                    self._reading = asyncio.create_task(self._read(rows))
                case Keep(batch):
                    await self._keep(batch)
                case Note():
                    await self._note(action)
                case Show(snapshot):
                    if self._watcher is not None:
                        self._watcher.shown(snapshot)
                case Decide(snapshot):
                    self._begin_asking(snapshot)
                case Close():
                    await self._close()
                case Yield(snapshot):
                    self._settle(Outcome(snapshot))
                case Return(snapshot, ending):
                    self._settle(Outcome(snapshot, ending))
                case _:  # Open: done with the first read, so that the clock covers it
                    pass

    async def _keep(self, batch: Any) -> None:
        if self._writer is None:
            return
        try:
            if batch.num_rows >= BIG:
                self._kept = await asyncio.to_thread(self._writer.append, batch)
            else:
                self._kept = self._writer.append(batch)
        except (StoreFullError, OSError):
            self.stop(Ending.STORE_LIMIT, "the row store failed")

    async def _note(self, note: Note) -> None:
        more: dict[str, Any] = {}
        if note.type == "chunk.received" and self._kept is not None:
            kept, self._kept = self._kept, None
            more = {"segment": kept.segment, "batch": kept.batch, "digest": kept.digest}
        entry = self._recorder.record(note, self._clock(), **more)
        if self._writer is not None:
            with contextlib.suppress(OSError):  # a full disk must not end a run that reads
                self._writer.note(entry)
        if self._watcher is not None:
            self._watcher.noted(entry)

    def _begin_asking(self, snapshot: dict[str, Any]) -> None:
        ask = self._ask
        if ask is None:
            self._mail.put_nowait(Decided("failed"))
            return

        async def asking() -> None:
            self._mail.put_nowait(await ask(snapshot))

        task = asyncio.create_task(asking())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _close(self) -> None:
        """Leave the read that is going on, then close: a driver closes badly under a read."""
        began = self._clock()
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait({reading}, timeout=LEAVE_WITHIN)
        if self._opened:
            await self._source.close()
        self.closed_in = self._clock() - began

    def _settle(self, outcome: Outcome) -> None:
        if outcome.ending is not None:
            self.final = outcome
        if not self._outcome.done():
            self._outcome.set_result(outcome)

    async def _leave(self) -> None:
        """However the task ends, nothing stays open and nobody waits for ever."""
        for task in (*self._asking, self._letter, self._reading):
            if task is not None:
                task.cancel()
        if self.closed_in is None and self._opened:
            await self._source.close()
        if self._writer is not None:
            self._writer.close()
        if not self._outcome.done():
            self._outcome.cancel()
