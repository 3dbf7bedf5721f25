"""Prefixes: watches live traffic for turns whose prompt does not begin as the turn before it did.

Of every session a few footprints are kept (its sub-agents talk under one key), of the latest turns
all that the doctor needs to say more. Both are of this ingress alone, and bounded.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence

from actors.replay import Prepared
from prompts.doctor import Break, Cause, Seen, diagnosed
from prompts.footprint import Footprint, broken, footprint, goes_on
from prompts.prompter import Plan, Prompter
from protocols import ids
from turns.blocks import Block, Reasoning, Text, ToolCall
from turns.errors import NotFoundError
from turns.reply import Reply

SESSIONS, EACH = 4096, 4
TURNS = 64
"""How many sessions have footprints, how many of them, and how many turns are kept whole."""


INLINE = 4096
"""Tokens of a prompt up to which its footprint is taken on the event loop (0.1 ms a thousand)."""

Key = tuple[str, str, str]
"""Owner, session and model."""


class Whole(Seen, frozen=True):
    """A turn kept whole: whose it is, and its prompter."""

    owner: str = ""
    prompter: Prompter | None = None


class Prefixes:
    """One per ingress. `tell` hears the model and the cause of each break."""

    def __init__(self, tell: Callable[[str, Cause], None]) -> None:
        self._tell = tell
        self._sessions: OrderedDict[Key, list[Footprint]] = OrderedDict()
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
            prompter=prompter,
        )
        while len(self._turns) > TURNS:
            self._turns.popitem(last=False)
        if not turn.session or not output:
            return
        key = (prepared.owner, turn.session, turn.model)
        if len(prompt.ids) <= INLINE:
            self._note(key, footprint(plan, prompt.ids, output, answer), prompt.ids)
        else:
            task = asyncio.ensure_future(self._note_later(key, plan, prompt.ids, output, answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _note_later(
        self,
        key: Key,
        plan: Plan,
        prompt: Sequence[int],
        output: Sequence[int],
        answer: Sequence[Block],
    ) -> None:
        mine = await asyncio.to_thread(footprint, plan, prompt, output, answer)
        self._note(key, mine, prompt)

    def _note(self, key: Key, mine: Footprint, prompt: Sequence[int]) -> None:
        """Compare a turn with the one that it goes on from, and keep it for the next."""
        known = self._sessions.setdefault(key, [])
        best = max(known, key=lambda old: goes_on(old, mine), default=None)
        if best is not None and goes_on(best, mine):
            known.remove(best)
            cause = broken(best, mine, prompt)
            if cause is not None:
                self._tell(key[2], cause)
        known.append(mine)
        del known[:-EACH]
        self._sessions.move_to_end(key)
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)

    async def settled(self) -> None:
        """Wait until every turn that came to its end is noted."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def report(self, owner: str, turn: str, before: str = "") -> tuple[str, Break | None]:
        """Where a turn's prompt parts from that of the turn `before` it: the one of its session
        when none is named. Raises NotFoundError.
        """
        later = self._turn(owner, turn)
        earlier = self._turn(owner, before) if before else self._before(later)
        if later.prompter is None:
            raise NotFoundError(f"of turn '{turn}' too little is known")
        return earlier.turn.id, diagnosed(later.prompter, earlier, later)

    def _turn(self, owner: str, name: str) -> Whole:
        found = self._turns.get(re.split("[_-]", name)[-1])
        if found is None or found.owner != owner:
            raise NotFoundError(f"no turn '{name}' among the last {TURNS} of this ingress")
        return found

    def _before(self, later: Whole) -> Whole:
        turn, found = later.turn, None
        for one in self._turns.values():
            if one is later:
                break
            if (one.owner, one.turn.session, one.turn.model) == (
                later.owner,
                turn.session,
                turn.model,
            ):
                found = one
        if found is None or not turn.session:
            raise NotFoundError("no earlier turn of this session is known here; name one: ?before=")
        return found
