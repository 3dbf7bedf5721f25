"""Replay: a turn's prompt with the replies in it that the ledger has, and what it shall know next.

The ledger is asked once a turn, for all replies at a time, and told once, at the turn's end. It
only ever makes prompts the same as they were: without it, replies are rendered anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from actors.keeper import Keeper
from prompts.prompter import Plan, Prompt, Prompter
from prompts.seals import Sealer, unsealed
from sessions.ledger import Ledger
from turns.reply import Reply
from turns.turn import Turn

log = logging.getLogger(__name__)
T = TypeVar("T")

INLINE_SIZE = 16_384
"""Bytes of a request body up to which preparing it on the event loop is cheaper than a thread."""


class Prepared(Struct, frozen=True):
    """A turn with its prompt, and whose it is."""

    turn: Turn
    plan: Plan
    prompt: Prompt
    owner: str


class Replay:
    """One per ingress. `clock` gives Unix seconds."""

    def __init__(
        self,
        ledger: Ledger,
        keeper: Keeper,
        sealer: Sealer | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._keeper = keeper
        self._sealer = sealer
        self._clock = clock

    async def prepare(self, prompter: Prompter, turn: Turn, *, size: int, owner: str) -> Prepared:
        """The turn's prompt, however long; `size` in bytes of JSON. Raises InvalidRequestError."""
        plan = await _at_work(size, lambda: prompter.plan(self._opened(turn, owner)))
        found = await self._found(owner, plan.keys)
        prompt = await _at_work(size, lambda: prompter.finish(plan, found))
        return Prepared(turn, plan, prompt, owner)

    def remember(
        self, prompter: Prompter, prepared: Prepared, reply: Reply, output: Sequence[int]
    ) -> asyncio.Future[Any] | None:
        """Write into the ledger what the turn generated; gives what to wait for."""
        entries = prompter.entries(prepared.plan, prepared.prompt, reply, output)
        if not entries:
            return None
        owner, write = prepared.owner, self._ledger.write
        return self._keeper.put(*(write(owner, key, ids) for key, ids in entries.items()))

    def seals(self, owner: str) -> Callable[[str], str] | None:
        """Seals spans of reasoning for one client, each once: every spelling of a turn says the
        same.
        """
        sealer = self._sealer
        if sealer is None:
            return None
        known: dict[str, str] = {}

        def seal(text: str) -> str:
            if text not in known:
                known[text] = sealer.seal(text, now=self._clock(), owner=owner)
            return known[text]

        return seal

    def _opened(self, turn: Turn, owner: str) -> Turn:
        if self._sealer is None:
            return turn
        return unsealed(turn, self._sealer, now=self._clock(), owner=owner)

    async def _found(self, owner: str, keys: Sequence[str]) -> Mapping[str, Sequence[int]]:
        if not keys:
            return {}
        try:
            ids = await self._ledger.find(owner, keys)
        except ValueError as error:  # a record of another version: the reply is rendered anew
            log.warning("the ledger has a record that cannot be read: %s", error)
            return {}
        return {key: one for key, one in zip(keys, ids, strict=True) if one is not None}


async def _at_work(size: int, work: Callable[[], T]) -> T:
    """On the event loop, or beside it where it takes long."""
    return work() if size <= INLINE_SIZE else await asyncio.to_thread(work)
