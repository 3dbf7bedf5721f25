"""Warming: prefixes computed before a turn asks for them, and kept while a session is silent.

Two reasons, one means: a prompt of one token's reply, of the lowest tier and priority, on the
replica that has the session. After a turn that ended in tool calls (hint `speculative_prefill`) it
computes what is known of the next prompt, and only where that differs from what the turn itself has
left in the cache: reasoning that is not kept, a call that is written anew. While a prefix is pinned
(`cache_control` with a ttl) it touches it, since no engine can pin. Whatever warms a session ends
when its next turn comes. A session may end through another ingress than the one that keeps it, so
each touch asks the store first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from array import array
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import takewhile
from operator import eq
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actors.conductor import Conductor
from actors.flights import Flight
from actors.keeper import Keeper
from actors.model_service import ModelService
from actors.replay import Prepared
from actors.spoken import spoken
from prompts.prompter import Prompt
from protocols.headers import LONGEST_TTL, TIERS
from sessions.records import OVER, RecordError
from sessions.store import write
from turns.blocks import Message, Text, ToolCall, ToolResult
from turns.errors import EngineError, TreadleError
from turns.events import Event
from turns.reply import Reply
from turns.turn import Turn

log = logging.getLogger(__name__)

LAST = -(2**31)
"""Priority of what warms, in the lowest tier: no turn that somebody waits for is behind it."""

REFRESH = 20.0
"""Seconds of silence after which a pinned prefix is touched."""

PINNED_TOKENS = 1_000_000
"""Tokens that one tenant may have pinned through one ingress; its oldest pin goes first."""

RESULTS = ("0", "\n")
"""Two results that share no beginning: where two prompts with them part, the known part ends."""

Key = tuple[str, str]
Prepare = Callable[[Turn], Awaitable[Prepared]]


class Ended(Struct, frozen=True):
    """A turn that came to its end. `resident` is what it left in its replica's cache."""

    model: ModelService
    prepared: Prepared
    replica: str
    reply: Reply
    resident: list[int]
    retain_s: int = 0
    speculate: bool = False
    final: bool = False


class Pin(Struct):
    """A prefix that is kept. Times in monotonic seconds, but `made`: in seconds since the epoch,
    which all ingresses share.
    """

    ended: Ended
    prompt: array[int]
    until: float
    touched: float
    made: float


class Unheard:
    """Takes what nobody listens to."""

    def take(self, events: list[Event]) -> None:
        pass

    def began(self, cached: int) -> None:
        pass

    def generated(self, ids: Sequence[int]) -> None:
        pass

    def leave(self) -> None:
        pass

    async def again(self, said: Sequence[int], lost: str) -> Sequence[str]:
        """A prefix is warm where its session is or not at all."""
        raise EngineError("its replica is gone")


class Warming(Unheard):
    """One warm prompt under way; forgotten when it is over."""

    def __init__(self, over: Callable[[], None]) -> None:
        self._over = over

    def landed(self, generated: int) -> None:
        self._over()


class Warmer:
    """One per ingress. `prepare` renders a turn as the ingress does."""

    def __init__(
        self,
        conductor: Conductor,
        keeper: Keeper,
        *,
        clock: Callable[[], float] = time.monotonic,
        epoch: Callable[[], float] = time.time,
    ) -> None:
        self._conductor = conductor
        self._keeper = keeper
        self._clock = clock
        self._epoch = epoch
        self._flights: dict[Key, Flight] = {}
        self._thinking: dict[Key, asyncio.Task[None]] = {}
        self.pins: dict[Key, Pin] = {}
        self.warmed = 0

    def pinned(self, owner: str, session: str) -> bool:
        """Whether the session's prefix is kept."""
        pin = self.pins.get((owner, session))
        return pin is not None and pin.until > self._clock()

    def begun(self, owner: str, session: str) -> None:
        """The session's real turn is here: nothing must stand in its way."""
        key = (owner, session)
        thinking = self._thinking.pop(key, None)
        if thinking is not None:
            thinking.cancel()
        flight = self._flights.pop(key, None)
        if flight is not None:
            self._conductor.cancel(flight)
        if key in self.pins:
            self.pins[key].touched = self._clock()

    def ended(
        self, ended: Ended, prepare: Prepare, keeping: asyncio.Future[object] | None = None
    ) -> None:
        """A turn of a session is over; `keeping` is its way into the ledger."""
        key = (ended.prepared.owner, ended.prepared.turn.session)
        if not key[1]:
            return
        if ended.final:
            self.pins.pop(key, None)
            self._keeper.put(write(OVER, *key, self._epoch(), ttl=LONGEST_TTL))
            return
        if ended.retain_s:
            self._pin(key, ended)
        calls = any(isinstance(block, ToolCall) for block in ended.reply.blocks)
        if ended.speculate and calls and key not in self._thinking:
            self._think(key, self._speculate(key, ended, prepare, keeping))

    def refresh(self) -> None:
        """Touch the pinned prefixes that were silent for `REFRESH`; call it now and then."""
        now = self._clock()
        for key, pin in list(self.pins.items()):
            if pin.until <= now:
                del self.pins[key]
            elif now - pin.touched >= REFRESH and not self._busy(key):
                pin.touched = now
                self._think(key, self._touch(key, pin))

    def _busy(self, key: Key) -> bool:
        return key in self._flights or key in self._thinking

    async def stop(self) -> None:
        """End what is under way."""
        for owner, session in {*self._flights, *self._thinking}:
            self.begun(owner, session)
        self.pins.clear()

    def _pin(self, key: Key, ended: Ended) -> None:
        now = self._clock()
        self.pins.pop(key, None)  # the newest pin stands last
        prompt = array("I", ended.prepared.prompt.ids)
        if len(prompt) > PINNED_TOKENS:
            return
        self.pins[key] = Pin(ended, prompt, now + ended.retain_s, now, self._epoch())
        own = [one for one in self.pins if one[0] == key[0]]
        tokens = sum(len(self.pins[one].prompt) for one in own)
        for oldest in own:
            if tokens <= PINNED_TOKENS:
                break
            tokens -= len(self.pins.pop(oldest).prompt)

    async def _touch(self, key: Key, pin: Pin) -> None:
        over = None  # a store that is away lets nothing go
        with contextlib.suppress(TreadleError, RecordError):
            (over,) = await self._keeper.store.get(OVER, *key)
        if self.pins.get(key) is not pin:
            return
        if over is not None and over >= pin.made:
            del self.pins[key]
            return
        whole = replace(pin.ended.prepared.prompt, ids=pin.prompt.tolist())
        self._warm(key, pin.ended, whole)

    async def _speculate(
        self, key: Key, ended: Ended, prepare: Prepare, keeping: asyncio.Future[object] | None
    ) -> None:
        if keeping is not None:
            await asyncio.wait([keeping])
        before = ended.prepared
        following = [next_turn(before.turn, ended.reply, text) for text in RESULTS]
        one, other = [(await prepare(turn)).prompt for turn in following]
        # its last token may merge with the result
        known = beginning(one, max(0, shared(one.ids, other.ids) - 1))
        card = ended.model.fleet.cards.get(ended.replica)
        if card is None:
            return
        resident = shared(known.ids, ended.resident) // card.block_size
        if len(known.ids) // card.block_size > resident:
            self._warm(key, ended, known)

    def _think(self, key: Key, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._thinking[key] = task
        task.add_done_callback(lambda done: self._thought(key, done))

    def _thought(self, key: Key, task: asyncio.Task[None]) -> None:
        if self._thinking.get(key) is task:
            del self._thinking[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("a prompt could not be kept warm or foreseen: %r", error)

    def _warm(self, key: Key, ended: Ended, prompt: Prompt) -> None:
        if ended.replica not in ended.model.fleet.cards:
            self.pins.pop(key, None)
            return
        turn = ended.prepared.turn
        quiet = replace(
            turn,
            id=f"warm-{uuid.uuid4().hex}",
            sampling=replace(turn.sampling, max_tokens=1, stop=()),
            hints=replace(turn.hints, tier=-TIERS, priority=LAST),
        )
        job = ended.model.job(quiet, prompt)
        job = replace(job, conversation=None, constraint=None, thinking_budget=None)

        def over() -> None:
            if self._flights.get(key) is flight:
                del self._flights[key]

        watch = Warming(over)
        with contextlib.suppress(TreadleError):
            flight = self._conductor.begin(job, ended.model.lease, [ended.replica], watch, watch)
            self._flights[key] = flight
            self.warmed += 1


def beginning(prompt: Prompt, count: int) -> Prompt:
    """The first tokens of a prompt, and the pictures that stand in them; less than `count` where
    that would cut one.
    """
    pictures = prompt.pictures
    cut = next((one.at for one in pictures if one.at < count < one.at + one.length), count)
    whole = tuple(one for one in pictures if one.at + one.length <= cut)
    return replace(prompt, ids=prompt.ids[:cut], pictures=whole)


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many leading tokens two prompts have in common."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def next_turn(turn: Turn, reply: Reply, text: str) -> Turn:
    """The session's next turn, were `text` the result of each call: all else is as it was."""
    blocks = spoken(turn, reply)
    results = tuple(
        ToolResult(block.id, (Text(text),), name=block.name)
        for block in blocks
        if isinstance(block, ToolCall)
    )
    said = (Message("assistant", tuple(blocks)), Message("tool", results))
    return replace(turn, messages=turn.messages + said, previous="", store=False)
