"""Idling: a session whose cache has gone cold may forget what it thought long ago.

All of its prompt must be computed again anyway, so the reasoning before its last question is left
out of it, and stays out: what was forgotten once is kept in the store, for every ingress.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from prompts.retention import last_question
from sessions.records import IDLED, Idled, RecordError
from sessions.store import Store, Write, write
from turns.turn import Turn

_encode = msgspec.msgpack.Encoder().encode


class Idling:
    """`ttl` in seconds: how long a conversation is known after its last turn."""

    def __init__(self, store: Store, *, ttl: float) -> None:
        self._store = store
        self._ttl = ttl

    async def before(self, turn: Turn, owner: str, *, after: float | None, now: float) -> int:
        """The message before which reasoning is forgotten: 0 where nothing is.

        `after` is how many seconds of idling make a session cold, None for never.
        """
        if after is None or not turn.session:
            return 0
        try:
            (known,) = await self._store.get(IDLED, owner, _name(turn))
        except RecordError:  # of another version: the session begins anew
            return 0
        if known is None:
            return 0
        before = known.before if known.before < len(turn.messages) else 0
        return max(before, last_question(turn)) if now - known.at > after else before

    def left(self, turn: Turn, owner: str, *, before: int, now: float) -> Write | None:
        """What to write when a turn has ended, with `before` as it was for this turn."""
        if not turn.session:
            return None
        return write(IDLED, owner, _name(turn), Idled(now, before), ttl=self._ttl)


def _name(turn: Turn) -> str:
    """A session's sub-agents talk under its name: what was asked first tells them apart."""
    first = next((m for m in turn.messages if m.role == "user"), None)
    return f"{turn.session}/{blake2b(_encode((turn.model, first)), digest_size=8).hexdigest()}"
