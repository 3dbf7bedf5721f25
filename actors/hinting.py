"""Hints from turn to turn: what a harness said once holds for its session, what it did not say is
learnt.

The session's record is read while the prompt is prepared, so it costs a turn nothing; what is not
there in time is not waited for.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from access.keys import Allowance
from access.urgency import held
from actors.keeper import Keeper
from actors.router_asking import wait_here
from sessions.estimates import Estimates
from sessions.records import SessionRecord, lasting
from turns.blocks import Message, ToolCall, ToolResult
from turns.turn import Hints, Turn

WAIT = 0.01
"""Seconds of its loop's own time that a prepared turn waits for its session's record at most."""


class Hinting:
    """One per ingress."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._estimates = Estimates()

    def received(
        self, turn: Turn, *, owner: str, harness: str, at: float
    ) -> asyncio.Future[Any] | None:
        """Note the turn in its session; gives the session's record to come."""
        osl = self._estimates.of_session(owner, turn.session) if turn.session else 0
        return self._keeper.seen(turn, owner=owner, harness=harness, at=at, osl=osl)

    async def filled(
        self, turn: Turn, kept: asyncio.Future[Any] | None, allowed: Allowance, *, owner: str
    ) -> Turn:
        """The turn with the hints of its session where it has none, no more urgent than is allowed,
        and the length of its reply as it is expected.
        """
        record = await _record(kept)
        hints = turn.hints if record is None else inherited(turn.hints, record.hints)
        hints, _ = held(hints, allowed)  # another key of the tenant may have said more
        if hints.osl is None:
            known = 0 if record is None else record.osl
            osl = self._estimates.expect(owner, turn.session, last_tool(turn.messages), known)
            most = turn.sampling.max_tokens
            hints = replace(hints, osl=min(osl, most) if osl and most else osl)
        return turn if hints == turn.hints else replace(turn, hints=hints)

    def replied(self, turn: Turn, tokens: int, *, owner: str) -> None:
        """A turn came to its end with so many tokens said."""
        self._estimates.saw(owner, turn.session, last_tool(turn.messages), tokens)


def inherited(own: Hints, kept: Hints) -> Hints:
    """A turn's own hints, and those of its session where it says nothing."""
    return replace(own, **{**lasting(kept), **lasting(own)})


def last_tool(messages: tuple[Message, ...]) -> str:
    """The tool whose result the turn brings, "" where it brings none."""
    last = messages[-1].blocks if messages else ()
    result = next((block for block in reversed(last) if isinstance(block, ToolResult)), None)
    if result is None:
        return ""
    for message in reversed(messages):
        for block in message.blocks:
            if isinstance(block, ToolCall) and block.id == result.call_id:
                return block.name
    return result.name


async def _record(kept: asyncio.Future[Any] | None) -> SessionRecord | None:
    if kept is None:
        return None
    await wait_here(kept, WAIT)
    if not kept.done() or kept.cancelled() or kept.exception() is not None:
        return None
    record: SessionRecord = kept.result()
    return record
