"""The watch over one turn: keeps the router's books, tells the taps, has the reply kept.

Everything here happens a fixed number of times a turn, nothing per token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from actors.keeper import Keeper
from actors.model_service import ChoiceTaken, ModelService
from actors.pace import Pace
from observe.seen import CallEnded, FirstEvent, Names, TurnEnded, TurnFailed, TurnStarted
from observe.taps import Tap
from sessions.records import StoredReply
from sessions.token_ids import pack
from turns.blocks import ToolCall
from turns.reply import CutCall, Fold, Reply

Remember = Callable[[Reply, Sequence[int]], None]
"""Has what a turn generated remembered; called before the turn's client hears of its end."""


class Heard(msgspec.Struct):
    """A turn as its ingress received it: names, the time (Unix seconds), and what it is kept by."""

    names: Names
    at: float
    prompt_hash: int = 0
    owner: str = ""


class TurnWatch:
    """One turn from its choice of a replica to its landing."""

    __slots__ = (
        "_fold",
        "_heard",
        "_keeper",
        "_model",
        "_output",
        "_pace",
        "_prompt_tokens",
        "_remember",
        "_taken",
        "_taps",
    )

    def __init__(
        self,
        heard: Heard,
        *,
        model: ModelService,
        taken: ChoiceTaken,
        prompt_tokens: int,
        fold: Fold,
        pace: Pace,
        taps: Tap,
        keeper: Keeper,
        remember: Remember,
    ) -> None:
        self._heard = heard
        self._model = model
        self._taken = taken
        self._prompt_tokens = prompt_tokens
        self._fold = fold
        self._pace = pace
        self._taps = taps
        self._keeper = keeper
        self._remember = remember
        self._output: Sequence[int] = ()

    def began(self, cached: int) -> None:
        now, heard = time.time(), self._heard
        self._model.began(self._taken, cached)
        self._taps.turn_started(TurnStarted(heard.names, now, self._prompt_tokens, cached))
        self._taps.first_event(FirstEvent(heard.names, now, now - heard.at))

    def generated(self, ids: Sequence[int]) -> None:
        self._output = ids

    def landed(self) -> None:
        self._model.release(self._taken)
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
            self._taps.turn_failed(TurnFailed(names, now, kind, message, seconds, streamed))
            return
        stop = reply.stop or "cancelled"  # the client left before the end
        self._taps.turn_ended(TurnEnded(names, now, stop, reply.usage, seconds, *self._paces()))
        if reply.stop is not None:
            self._remember(reply, self._output)
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
