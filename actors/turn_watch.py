"""The watch over one turn: keeps the router's books, tells the taps, has the reply kept.

Everything here happens a fixed number of times a turn, nothing per token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from actors.keeper import Keeper
from actors.model_service import ChoiceTaken, ModelService
from actors.pace import Pace
from observe.seen import (
    CallEnded,
    FirstEvent,
    Names,
    TurnEnded,
    TurnFailed,
    TurnRouted,
    TurnStarted,
)
from observe.taps import Tap
from prompts.prompter import Prompt
from sessions.records import StoredReply
from sessions.token_ids import pack
from turns.blocks import ToolCall
from turns.reply import CutCall, Fold, Reply
from turns.turn import Turn

Remember = Callable[[Reply, Sequence[int], str], None]
"""Has what a turn generated remembered, and on which replica it ended; called before the turn's
client hears of its end.
"""


class Heard(msgspec.Struct):
    """A turn as its ingress received it: names, the time (Unix seconds), and what it is kept by."""

    names: Names
    at: float
    prompt_hash: int = 0
    owner: str = ""


class TurnWatch:
    """One turn from its choice of a replica to its landing. `taken` is None between two places."""

    __slots__ = (
        "_attempt",
        "_fold",
        "_heard",
        "_keeper",
        "_model",
        "_output",
        "_pace",
        "_pinned",
        "_prompt",
        "_remember",
        "_taken",
        "_taps",
        "_told",
        "_turn",
    )

    def __init__(
        self,
        heard: Heard,
        *,
        model: ModelService,
        turn: Turn,
        prompt: Prompt,
        pinned: bool,
        fold: Fold,
        pace: Pace,
        taps: Tap,
        keeper: Keeper,
        remember: Remember,
    ) -> None:
        self._heard = heard
        self._model = model
        self._turn = turn
        self._prompt = prompt
        self._pinned = pinned
        self._taken: ChoiceTaken | None = None
        self._attempt = 0
        self._told = False
        self._fold = fold
        self._pace = pace
        self._taps = taps
        self._keeper = keeper
        self._remember = remember
        self._output: Sequence[int] = ()

    async def choose(self) -> Sequence[str]:
        """The replicas for the turn, the one where a place is reserved first."""
        return await self._choose(self._prompt, "")

    async def again(self, said: Sequence[int], lost: str) -> Sequence[str]:
        """The same for a turn that goes on behind what it said; its place so far is given up."""
        self.leave()
        return await self._choose(replace(self._prompt, ids=[*self._prompt.ids, *said]), lost)

    async def _choose(self, prompt: Prompt, lost: str) -> Sequence[str]:
        asked = time.time()
        taken = self._taken = await self._model.choose(
            self._turn, prompt, lost=lost, tenant=self._heard.owner, pinned=self._pinned
        )
        now = time.time()
        self._attempt += 1
        if self._attempt == 1:
            self._heard.prompt_hash = taken.prompt_hash
        self._taps.turn_routed(
            TurnRouted(
                self._heard.names,
                now,
                taken.replica,
                taken.why,
                now - asked,
                taken.overlap_tokens,
                self._attempt,
            )
        )
        return (taken.replica, *taken.others)

    def leave(self) -> None:
        """Give up its place, if it has one."""
        taken, self._taken = self._taken, None
        if taken is not None:
            self._model.release(taken)

    def began(self, cached: int) -> None:
        if self._taken is not None:
            self._model.began(self._taken, cached)
        if self._told:
            return
        self._told = True
        now, heard = time.time(), self._heard
        self._taps.turn_started(TurnStarted(heard.names, now, len(self._prompt.ids), cached))
        self._taps.first_event(FirstEvent(heard.names, now, now - heard.at))

    def generated(self, ids: Sequence[int]) -> None:
        self._output = ids

    def landed(self, generated: int) -> None:
        replica = "" if self._taken is None else self._taken.replica
        self.leave()
        self._fold.broken_off(generated)
        now, heard, reply = time.time(), self._heard, self._fold.reply()
        names, seconds = heard.names, now - heard.at
        ready = 0
        for block in reply.blocks:
            if isinstance(block, ToolCall):
                lead = self._pace.lead(ready)
                self._taps.call_ended(CallEnded(names, now, block.name, lead=lead))
                ready += 1
            elif isinstance(block, CutCall):
                self._taps.call_ended(CallEnded(names, now, block.call.name, block.reason))
        if reply.failed is not None:
            kind, message = reply.failed.kind, reply.failed.message
            streamed = bool(reply.usage.input)
            seen = TurnFailed(names, now, kind, message, seconds, streamed, reply.usage)
            self._taps.turn_failed(seen)
            return
        stop = reply.stop or "cancelled"  # the client left before the end
        self._taps.turn_ended(TurnEnded(names, now, stop, reply.usage, seconds, *self._paces()))
        if reply.stop is not None:
            self._remember(reply, self._output, replica)
            self._keep(reply, now)

    def _paces(self) -> tuple[float, float]:
        return self._pace.gap(), self._pace.longest()

    def _keep(self, reply: Reply, now: float) -> None:
        names = self._heard.names
        self._keeper.keep(
            self._heard.owner,
            StoredReply(
                turn=names.turn,
                session=names.session,
                prompt_hash=self._heard.prompt_hash,
                blocks=reply.blocks,
                ids=pack(self._output),
                usage=reply.usage,
                stop=reply.stop,
                created=now,
            ),
        )
