"""The keeper: what an ingress writes to the store, beside the turns and never in their way.

Writes run as tasks; a store that is slow or away costs a turn nothing (`sessions.guarded_store`)
and at most `bound` writes wait at a time, past which the oldest knowledge is simply not kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from sessions.records import REPLY, TURNS, SessionSeen, StoredReply
from sessions.store import Store, Write, write
from turns.turn import Turn

BOUND = 1000


class Keeper:
    """`ttl` in seconds: how long a session and its replies are kept after its last turn."""

    def __init__(self, store: Store, *, ttl: float, bound: int = BOUND) -> None:
        self.store = store
        self._ttl = ttl
        self._bound = bound
        self._tasks: set[asyncio.Task[Any]] = set()

    def seen(
        self, turn: Turn, *, owner: str, harness: str, at: float, osl: int = 0
    ) -> asyncio.Future[Any] | None:
        """Note the turn's session and the hints that came with it; gives the session's record to
        come. None where there is no session to note, or too many writes wait.
        """
        if turn.session:
            seen = SessionSeen(
                owner=owner,
                key=turn.session,
                at=at,
                harness=harness,
                model=turn.model,
                parent=turn.parent_session,
                hints=turn.hints,
                osl=osl,
            )
            return self._spawn(self.store.touch_session(seen, self._ttl))
        return None

    def put(self, *writes: Write) -> asyncio.Future[Any] | None:
        """Put records; gives what to wait for, None where too many wait already."""
        return self._spawn(self.store.put(*writes))

    def keep(self, owner: str, reply: StoredReply) -> None:
        """Keep the reply of a turn, and its place in the session."""
        self._spawn(self._keep(owner, reply))

    async def _keep(self, owner: str, reply: StoredReply) -> None:
        await self.store.put(write(REPLY, owner, reply.turn, reply, ttl=self._ttl))
        if reply.session:
            await self.store.append(
                TURNS, owner, reply.session, [reply.turn], ttl=self._ttl, keep=1000
            )

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any] | None:
        if len(self._tasks) >= self._bound:
            work.close()
            return None
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        """Wait until everything handed in is written (or lost)."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
