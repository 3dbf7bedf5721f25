"""A store that never fails a turn and never slows one: what stands before Redis.

Each call has a bounded time. The first failure (or a time in which nothing at all was answered)
opens the breaker: from then on calls answer at once with "nothing there" or "not written", while
one task asks the store whether it is back, at growing intervals. Only a record that a turn cannot
go on without (a response to continue) is an error to miss: UnavailableError, never a false "not
found". A record that cannot be read is missing, whatever its kind, and alone: what was asked for
beside it is given.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar, cast

from sessions.records import Kind, RecordError, SessionRecord, SessionSeen, touched
from sessions.store import Store, Write
from turns.errors import UnavailableError

T = TypeVar("T")
R = TypeVar("R")

LOOKS = 5
"""In so many parts a time-out passes."""
NEEDED_TIMES = 8
"""As much longer is waited until a record is written that a turn cannot go on without."""


class StoreTap(Protocol):
    """Told when trouble begins (`away`), and of each late answer and each unreadable record."""

    def redis_trouble(self, operation: str, error: str, at: float, *, away: bool) -> None: ...

    def redis_recovered(self, seconds: float, at: float) -> None:
        """The store is back after that many seconds away."""
        ...


class GuardedStore:
    """Wraps a store. Times in seconds; `clock` gives those that the tap is told."""

    def __init__(
        self,
        store: Store,
        tap: StoreTap,
        *,
        timeout: float = 0.25,
        first_probe: float = 0.1,
        longest_probe: float = 5.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._tap = tap
        self._timeout = timeout
        self._first_probe = first_probe
        self._longest_probe = longest_probe
        self._clock = clock
        self._probe: asyncio.Task[None] | None = None
        self._answers = 0

    @property
    def away(self) -> bool:
        """Whether the breaker is open."""
        return self._probe is not None

    async def touch_session(self, seen: SessionSeen, ttl: float) -> SessionRecord:
        """While the store is away the session is as if this were its first turn."""
        fresh = touched(None, seen)
        return await self._call(
            "touch_session", lambda: self._store.touch_session(seen, ttl), fresh
        )

    async def session(self, owner: str, key: str) -> SessionRecord | None:
        return await self._call("session", lambda: self._store.session(owner, key), None)

    async def end_session(self, owner: str, key: str) -> bool:
        return await self._call("end_session", lambda: self._store.end_session(owner, key), False)

    async def put(self, *writes: Write) -> bool:
        needed = any(w.kind.needed for w in writes)
        return await self._call(
            "put", lambda: self._store.put(*writes), False, patience=self._to_write(needed)
        )

    async def get(
        self, kind: Kind[T], owner: str, *ids: str, renew: float | None = None
    ) -> list[T | None]:
        nothing: list[T | None] = [None] * len(ids)
        return await self._call(
            "get", lambda: self._store.get(kind, owner, *ids, renew=renew), nothing, kind
        )

    async def delete(self, kind: Kind[T], owner: str, *ids: str) -> int:
        return await self._call("delete", lambda: self._store.delete(kind, owner, *ids), 0, kind)

    async def append(
        self, kind: Kind[T], owner: str, name: str, records: Sequence[T], *, ttl: float, keep: int
    ) -> bool:
        return await self._call(
            "append",
            lambda: self._store.append(kind, owner, name, records, ttl=ttl, keep=keep),
            False,
            patience=self._to_write(kind.needed),
        )

    async def items(self, kind: Kind[T], owner: str, name: str) -> list[T]:
        nothing: list[T] = []
        return await self._call(
            "items", lambda: self._store.items(kind, owner, name), nothing, kind
        )

    async def ping(self) -> None:
        """The state as the breaker has it; asks nobody."""
        if self.away:
            raise UnavailableError("the session store is away")

    async def close(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)
            self._probe = None
        await self._store.close()

    async def _call(
        self,
        operation: str,
        call: Callable[[], Coroutine[Any, Any, R]],
        nothing: R,
        kind: Kind[Any] | None = None,
        patience: float | None = None,
    ) -> R:
        if not self.away:
            answers = self._answers
            patience = patience or self._timeout
            try:
                async with _patient(patience):
                    answer = await call()
                self._answers += 1
            except TimeoutError:
                # Late while others are answered is load, not a store that is away.
                late = f"no answer in {patience:g} s"
                if self._answers == answers:
                    self._open(operation, late)
                else:
                    self._tap.redis_trouble(operation, late, self._clock(), away=False)
            except RecordError as error:  # one bad record is not a store that is away
                self._tap.redis_trouble(operation, str(error), self._clock(), away=False)
                return nothing if error.rest is None else cast("R", error.rest)
            except ValueError:  # the caller's own mistake
                raise
            except Exception as error:  # noqa: BLE001 whatever ails the client library, a turn goes on
                self._open(operation, str(error))
            else:
                return answer
        if kind is not None and kind.needed:
            raise UnavailableError(
                f"the store of each {kind.name} cannot be reached: send the request again shortly"
            )
        return nothing

    def _to_write(self, needed: bool) -> float:
        return self._timeout * (NEEDED_TIMES if needed else 1)

    def _open(self, operation: str, error: str) -> None:
        if self._probe is None:
            self._tap.redis_trouble(operation, error, self._clock(), away=True)
            self._probe = asyncio.create_task(self._recover(self._clock()))

    async def _recover(self, since: float) -> None:
        pause = self._first_probe
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._longest_probe)
            try:
                async with _patient(self._timeout):
                    await self._store.ping()
            except Exception:  # noqa: BLE001, S112 as in _call; the tap was told at the beginning
                continue
            break
        self._probe = None
        now = self._clock()
        self._tap.redis_recovered(now - since, now)


@asynccontextmanager
async def _patient(seconds: float) -> AsyncIterator[None]:
    """`asyncio.timeout` that lets the event loop look for the answer in between: a loop that stood
    still is no store that is late, and uses up one of the looks however long it took.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def look(left: int) -> asyncio.TimerHandle:
        return loop.call_later(seconds / LOOKS, looked, left)

    def looked(left: int) -> None:
        nonlocal timer
        if left:
            timer = look(left - 1)
        else:
            scope.reschedule(loop.time())

    timer = look(LOOKS - 1)
    try:
        async with asyncio.timeout(None) as scope:
            yield
    finally:
        timer.cancel()
