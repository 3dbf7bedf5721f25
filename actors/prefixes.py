"""Prefixes: watches live traffic for turns whose prompt does not begin as the turn before it did.

Of every session a few footprints are kept (its sub-agents talk under one key), of the latest turns
all that the doctor needs to say more. Both are of this ingress alone, and bounded; what the doctor
needs is in the store too for a while, where any ingress finds it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actors.model_service import ModelService
from actors.replay import Prepared
from prompts.doctor import Break, Cause, Seen, diagnosed
from prompts.footprint import Footprint, broken, footprint, goes_on
from prompts.prompter import Plan, Prompter
from protocols import ids
from sessions.past_turns import Answer, PastTurn, PastTurns, packed
from turns.blocks import Block, Reasoning, Text, ToolCall
from turns.errors import InvalidRequestError, NotFoundError, TreadleError
from turns.reply import Reply
from turns.turn import Turn

log = logging.getLogger(__name__)

SESSIONS, EACH = 4096, 4
TURNS = 64
"""How many sessions have footprints, how many of them, and how many turns are kept whole."""

WAITING = 256
"""Turns that may be on their way to the store; further ones are not kept there."""

SYSTEM = ("system", "developer")


INLINE = 4096
"""Tokens of a prompt up to which its footprint is taken on the event loop (0.1 ms a thousand)."""

Key = tuple[str, str, str]
"""Owner, session and model."""


class Whole(Struct, frozen=True):
    """A turn kept whole, and whose it is: see `prompts.doctor.Seen`. Without its plan it came from
    the store; reasoning `before` that message was forgotten.
    """

    turn: Turn
    ids: Sequence[int]
    output: Sequence[int]
    answer: Sequence[Block]
    reply_at: int
    owner: str
    plan: Plan | None = None
    before: int = 0
    at: float = 0.0


class Prefixes:
    """One per ingress. `tell` hears the model and the cause of each break; `models` gives one
    by its name, and raises as `ModelNames.model`.
    """

    def __init__(
        self,
        tell: Callable[[str, Cause], None],
        models: Callable[[str], ModelService],
        past: PastTurns | None = None,
    ) -> None:
        self._tell = tell
        self._models = models
        self._past = past
        self._sessions: OrderedDict[Key, list[tuple[str, Footprint]]] = OrderedDict()
        self._breaks: OrderedDict[str, tuple[Cause, str]] = OrderedDict()
        self._turns: OrderedDict[str, Whole] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def ended(
        self, prompter: Prompter, prepared: Prepared, reply: Reply, output: Sequence[int]
    ) -> None:
        """A turn came to its end; its `output` is empty where it is not known."""
        turn, plan, prompt = prepared.turn, prepared.plan, prepared.prompt
        answer = [b for b in reply.blocks if isinstance(b, Text | Reasoning | ToolCall)]
        self._turns[ids.stem(turn.id)] = Whole(
            turn=turn,
            plan=plan,
            ids=prompt.ids,
            output=output,
            answer=answer,
            reply_at=prompt.reply_at,
            owner=prepared.owner,
            at=time.time(),
        )
        while len(self._turns) > TURNS:
            self._turns.popitem(last=False)
        if self._past is not None and len(self._tasks) < WAITING:
            self._spawn(self._keep(self._past, prepared, output, tuple(answer)))
        if not turn.session or not output:
            return
        key = (prepared.owner, turn.session, turn.model)
        if len(prompt.ids) <= INLINE:
            self._note(key, turn.id, footprint(plan, prompt.ids, output, answer), prompt.ids)
        else:
            mine = asyncio.to_thread(footprint, plan, prompt.ids, output, answer)
            self._spawn(self._note_later(key, turn.id, mine, prompt.ids))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(
        self, past: PastTurns, prepared: Prepared, output: Sequence[int], answer: Answer
    ) -> None:
        turn, prompt = prepared.turn, prepared.prompt
        kept = PastTurn(
            replace(turn, echo={}),
            prompt.ids,
            list(output),
            answer,
            prompt.reply_at,
            prepared.before,
            time.time(),
        )
        try:
            data = await asyncio.to_thread(packed, kept)
            await past.keep(prepared.owner, ids.stem(turn.id), turn.session, data)
        except (TreadleError, TypeError, ValueError, OverflowError) as error:
            log.info("turn %s is not kept for the prefix doctor: %s", turn.id, error)

    async def _note_later(
        self, key: Key, turn: str, mine: Awaitable[Footprint], prompt: Sequence[int]
    ) -> None:
        self._note(key, turn, await mine, prompt)

    def _note(self, key: Key, turn: str, mine: Footprint, prompt: Sequence[int]) -> None:
        """Compare a turn with the one that it goes on from, and keep it for the next."""
        known = self._sessions.setdefault(key, [])
        best = max(known, key=lambda old: goes_on(old[1], mine), default=None)
        if best is not None and goes_on(best[1], mine):
            known.remove(best)
            cause = broken(best[1], mine, prompt)
            if cause is not None:
                self._tell(key[2], cause)
                self._breaks[turn] = cause, best[0]
                while len(self._breaks) > TURNS:
                    self._breaks.popitem(last=False)
        known.append((turn, mine))
        del known[:-EACH]
        self._sessions.move_to_end(key)
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)

    async def settled(self) -> None:
        """Wait until every turn that came to its end is noted."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def noted(self) -> None:
        """Wait a moment for the turns that have come to their end by now to be noted."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)

    def whole(self, turn: str) -> Whole | None:
        """A turn that is kept whole here, if it still is."""
        return self._turns.get(ids.stem(turn))

    def prompter(self, model: str) -> Prompter:
        """What rendered the turns of a model."""
        return self._models(model).folder.prompter

    def taken_break(self, turn: str) -> tuple[Cause, str] | None:
        """Why a turn's prefix broke, and the turn that it should have gone on from: told once."""
        return self._breaks.pop(turn, None)

    async def report(self, owner: str, turn: str, before: str = "") -> tuple[str, Break | None]:
        """Where a turn's prompt parts from that of the turn `before` it: the one that it goes on
        from when none is named. Raises NotFoundError, and InvalidRequestError for two models.
        """
        stem = re.split("[_-]", turn)[-1]
        around = await self._around(owner, stem)
        later = around.get(stem)
        if later is None:
            raise NotFoundError(f"no turn {turn!r} is known here any more")
        if before:
            name = re.split("[_-]", before)[-1]
            earlier = around.get(name) or (await self._around(owner, name)).get(name)
            if earlier is None:
                raise NotFoundError(f"no turn {before!r} is known here any more")
        else:
            earlier = _last_before(later, list(around.values()))
        model = self._models(later.turn.model)
        if model is not self._models(earlier.turn.model):
            raise InvalidRequestError(
                "turns of two models have no prefix in common", param="before"
            )
        return earlier.turn.id, await asyncio.to_thread(
            _diagnosed, model.folder.prompter, earlier, later
        )

    async def _around(self, owner: str, stem: str) -> dict[str, Whole]:
        """The turn of that stem and others of its session, of here and of the store, by age."""
        found: dict[str, Whole] = {}
        for past in await self._past.around(owner, stem) if self._past is not None else ():
            found[ids.stem(past.turn.id)] = _whole(past, owner)
        mine = self._turns.get(stem)
        session = mine.turn.session if mine is not None else ""
        for name, one in self._turns.items():
            same = bool(session) and one.turn.session == session
            if one.owner == owner and (same or name == stem):
                found.setdefault(name, one)
        return dict(sorted(found.items(), key=lambda item: item[1].at))


def _whole(past: PastTurn, owner: str) -> Whole:
    return Whole(
        turn=past.turn,
        ids=past.ids,
        output=past.output,
        answer=past.answer,
        reply_at=past.reply_at,
        owner=owner,
        before=past.before,
        at=past.at,
    )


def _diagnosed(prompter: Prompter, earlier: Whole, later: Whole) -> Break | None:
    """As the doctor sees the two; what came from the store is planned again first."""
    pair = (
        Seen(
            one.turn,
            one.plan or prompter.plan(one.turn, forget_before=one.before),
            one.ids,
            one.output,
            one.answer,
            one.reply_at,
        )
        for one in (earlier, later)
    )
    return diagnosed(prompter, *pair)


def _last_before(later: Whole, around: list[Whole]) -> Whole:
    """Of the turns before it that of whose conversation it has most, the last of them."""
    earlier = around[: around.index(later)]
    if not earlier or not later.turn.session:
        raise NotFoundError("no earlier turn of this session is known here; name one: ?before=ID")
    said = [m for m in later.turn.messages if m.role not in SYSTEM]

    def shared(at: int) -> tuple[int, int]:
        own = (m for m in earlier[at].turn.messages if m.role not in SYSTEM)
        same = (a == b for a, b in zip(own, said, strict=False))
        return sum(takewhile(bool, same)), at

    return earlier[max(range(len(earlier)), key=shared)]
