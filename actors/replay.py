"""Replay: a turn's prompt with the replies in it that the ledger has, and what it shall know next.

The ledger is asked once a turn, for all replies at a time, and told once, at the turn's end. It
only ever makes prompts the same as they were: without it, replies are rendered anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from time import perf_counter
from typing import Any, TypeVar

from msgspec import Struct, field

from actors.idling import Idling
from actors.keeper import Keeper
from prompts.prompter import Plan, Prompt, Prompter
from prompts.seals import Sealer, unsealed
from sessions.ledger import Ledger
from turns.reply import Reply
from turns.turn import Turn

log = logging.getLogger(__name__)
T = TypeVar("T")

STAGES = ("plan", "ledger", "finish")
"""What making a prompt is made of."""

INLINE_SIZE = 16_384
"""Bytes of a request body up to which preparing it on the event loop is cheaper than a thread."""


class Prepared(Struct, frozen=True):
    """A turn, its seals opened, with its prompt, and whose it is.

    Reasoning `before` that message was forgotten; `stages` says in seconds what took how long.
    """

    turn: Turn
    plan: Plan
    prompt: Prompt
    owner: str
    before: int = 0
    stages: dict[str, float] = field(default_factory=dict)


class Replay:
    """One per ingress. `clock` gives Unix seconds."""

    def __init__(
        self,
        ledger: Ledger,
        keeper: Keeper,
        sealer: Sealer | None = None,
        *,
        idling: Idling | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._keeper = keeper
        self._sealer = sealer
        self._idling = idling
        self._clock = clock

    async def prepare(self, prompter: Prompter, turn: Turn, *, size: int, owner: str) -> Prepared:
        """The turn's prompt, however long; `size` in bytes of JSON. Raises InvalidRequestError."""
        times = [perf_counter()]
        before = await self._forgotten(prompter, turn, owner)

        def planned() -> tuple[Turn, Plan]:
            opened = self._opened(turn, owner)
            return opened, prompter.plan(opened, forget_before=before)

        opened, plan = await _at_work(size, planned)
        times.append(perf_counter())
        found = await self._found(owner, plan.keys)
        times.append(perf_counter())
        prompt = await _at_work(size, lambda: prompter.finish(plan, found))
        times.append(perf_counter())
        stages = {name: b - a for name, (a, b) in zip(STAGES, pairwise(times), strict=True)}
        return Prepared(opened, plan, prompt, owner, before, stages)

    def remember(
        self, prompter: Prompter, prepared: Prepared, reply: Reply, output: Sequence[int]
    ) -> asyncio.Future[Any] | None:
        """Write into the ledger what the turn generated; gives what to wait for."""
        entries = prompter.entries(prepared.plan, prepared.prompt, reply, output)
        owner, write = prepared.owner, self._ledger.write
        writes = [write(owner, key, ids) for key, ids in entries.items()]
        if self._idling is not None and prompter.settings.forget_after_idle_s is not None:
            now, before = self._clock(), prepared.before
            left = self._idling.left(prepared.turn, owner, before=before, now=now)
            writes += [left] if left is not None else []
        return self._keeper.put(*writes) if writes else None

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

    async def _forgotten(self, prompter: Prompter, turn: Turn, owner: str) -> int:
        after = prompter.settings.forget_after_idle_s
        if self._idling is None or after is None:
            return 0
        return await self._idling.before(turn, owner, after=after, now=self._clock())

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
