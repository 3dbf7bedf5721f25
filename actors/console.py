"""The console's view of the cluster: what all ingresses wrote to the store, read together.

Whoever looks at it asks any ingress. What many people look at is read once a `FRESH` seconds.
With `redact` nothing that a person or a model wrote is in any answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from actors.board import ALL, DETAIL, FEED, INGRESSES, LINES, LIVE, ROW, ROWS, BoardSettings
from observe.record import Detail, Line, Row, seen_in, together
from sessions.records import REPLY
from sessions.store import Store
from turns.blocks import Reasoning, Text, ToolCall
from turns.errors import NotFoundError
from turns.reply import CutCall, ReplyBlock, ToolAnswer, ToolListing

T = TypeVar("T")

FRESH = 0.7
"""Seconds for which a list that was read is good enough for the next who asks."""
PAGE = 100
LONGEST = 20_000
"""Characters of a block that are shown."""
ROWS_AT_A_TIME = 1000


class Air(Struct):
    """So many turns are in the air, `lines` are the latest of each ingress."""

    count: int
    lines: list[Line]


class SessionPage(Struct):
    """Sessions of `total` that match, latest first, from `offset` on; `live` turns are in the air
    in all.
    """

    total: int
    offset: int
    live: int
    sessions: list[Row]


class SessionView(Struct):
    """A session and its latest turns: those that are over, oldest first, and those in the air."""

    session: Row
    turns: list[Line]
    live: list[Line]


class Shown(Struct, omit_defaults=True):
    """A block of a reply as the console shows it; `cut` says why it never became whole."""

    kind: str
    text: str = ""
    tool: str = ""
    cut: str = ""
    more: int = 0


class TurnView(Struct):
    """A turn whole: its line, its prompt in blocks, what was answered. Parts are None where
    nothing is kept of them any more.
    """

    line: Line
    detail: Detail | None
    reply: list[Shown] | None
    redacted: bool


class Console:
    """One per ingress."""

    def __init__(self, store: Store, settings: BoardSettings) -> None:
        self.settings = settings
        self._store = store
        self._fresh: dict[str, tuple[float, asyncio.Future[Any]]] = {}

    async def sessions(
        self, wanted: str = "", *, offset: int = 0, limit: int = PAGE
    ) -> SessionPage:
        """A page of the sessions whose key, harness or model has the words `wanted` in it."""
        rows = await self._once("rows", self._rows)
        live = await self.live()
        air: dict[str, int] = {}
        for line in live.lines:
            air[line.session] = air.get(line.session, 0) + 1
        known = {row.session: row for row in rows}
        for line in live.lines:
            known.setdefault(line.session, _first_row(line))
        words = wanted.lower().split()
        found = [
            replace(row, live=air[row.session], last=time.time()) if row.session in air else row
            for row in known.values()
            if all(word in f"{row.key} {row.harness} {row.model}".lower() for word in words)
        ]
        found.sort(key=lambda row: (-min(1, row.live), -row.last))
        limit = max(1, min(limit, PAGE))
        return SessionPage(len(found), offset, live.count, found[offset : offset + limit])

    async def session(self, name: str) -> SessionView:
        """Raises NotFoundError."""
        kept = await self._store.items(LINES, "", name)
        once = {line.turn: line for line in kept}  # what came late came twice
        lines = sorted(once.values(), key=_begun)
        live = [line for line in (await self.live()).lines if line.session == name]
        rows = await self._once("rows", self._rows)
        row = next((row for row in rows if row.session == name), None)
        if row is None and lines:
            row = _row_of(lines)
        if row is None and live:
            row = _first_row(live[0])
        if row is None:
            raise NotFoundError(f"no session '{name}' is kept here")
        over = {line.turn for line in lines}
        live = [line for line in live if line.turn not in over]
        return SessionView(replace(row, live=len(live)), lines, live)

    async def turn(self, session: str, turn: str) -> TurnView:
        """Raises NotFoundError."""
        lines = await self._store.items(LINES, "", session)
        line = next((line for line in lines if line.turn == turn), None)
        if line is None:
            air = await self.live()
            line = next((line for line in air.lines if line.turn == turn), None)
            if line is None:
                raise NotFoundError(f"no turn '{turn}' is kept of this session")
            return TurnView(line, None, None, self.settings.redact)
        detail = (await self._store.get(DETAIL, "", line.slot))[0] if line.slot else None
        if detail is not None and detail.turn != turn:  # the slot has been given to a later one
            detail = None
        return TurnView(line, detail, await self._reply(line), self.settings.redact)

    async def live(self) -> Air:
        """The turns in the air, of all ingresses."""
        found: Air = await self._once("live", self._live)
        return found

    async def ended(self) -> Sequence[str]:
        """The sessions in which turns have ended, latest last; each as often as turns ended."""
        found: Sequence[str] = await self._once("feed", lambda: self._store.items(FEED, "", ALL))
        return found

    def renew(self) -> None:
        """From now on nothing is answered that was read before."""
        self._fresh.clear()

    async def _reply(self, line: Line) -> list[Shown] | None:
        if self.settings.redact:
            return None
        reply = (await self._store.get(REPLY, line.owner, line.turn))[0]
        return None if reply is None else [shown(block) for block in reply.blocks]

    async def _rows(self) -> list[Row]:
        """The sessions with the latest turns. Their names are among those told last, but not in
        the order of their turns: see `board.KEEP`.
        """
        most = self.settings.sessions
        told = await self._store.items(ROWS, "", ALL)
        names = list(dict.fromkeys(reversed(told)))[: 2 * most]
        found: dict[str, Row] = {}
        for start in range(0, len(names), ROWS_AT_A_TIME):
            some = names[start : start + ROWS_AT_A_TIME]
            for row in await self._store.get(ROW, "", *some):
                if row is not None:
                    known = found.get(row.session)
                    found[row.session] = together(known, row) if known else row
            await asyncio.sleep(0)
        return sorted(found.values(), key=_last, reverse=True)[:most]

    async def _live(self) -> Air:
        names = list(dict.fromkeys(await self._store.items(INGRESSES, "", ALL)))
        found = await self._store.get(LIVE, "", *names)
        there = [one for one in found if one is not None]
        count = sum(max(one.count, len(one.lines)) for one in there)
        return Air(count, [line for one in there for line in one.lines])

    async def _once(self, name: str, read: Callable[[], Awaitable[T]]) -> T:
        """What `read` gives, or what it gave a moment ago to somebody else."""
        now = time.monotonic()
        at, known = self._fresh.get(name, (0.0, None))
        if known is None or now - at > FRESH or (known.done() and known.exception()):
            known = asyncio.ensure_future(read())
            self._fresh[name] = now, known
        return await asyncio.shield(known)


def shown(block: ReplyBlock) -> Shown:
    """A block as it is shown: its beginning where it is very long."""
    match block:
        case Text(text=text):
            return Shown("text", text[:LONGEST], more=max(0, len(text) - LONGEST))
        case Reasoning(text=text):
            return Shown("reasoning", text[:LONGEST], more=max(0, len(text) - LONGEST))
        case ToolCall(name=name, arguments=text):
            return Shown("call", text[:LONGEST], name, more=max(0, len(text) - LONGEST))
        case CutCall(call=call, reason=reason):
            return Shown("call", call.arguments[:LONGEST], call.name, reason)
        case ToolAnswer(text=text):
            return Shown("answer", text[:LONGEST], more=max(0, len(text) - LONGEST))
        case ToolListing(server=server, tools=tools):
            return Shown("answer", f"{server} has {len(tools)} tools")


def _first_row(line: Line) -> Row:
    return Row(
        line.session, line.key, line.owner, line.at, line.at, line.harness, line.model, line.api
    )


def _row_of(lines: Sequence[Line]) -> Row:
    """What the lines that are kept, oldest first, say of a session whose row is gone."""
    row = _first_row(lines[0])
    for line in lines:
        seen_in(row, line)
    return row


def _last(row: Row) -> float:
    return row.last


def _begun(line: Line) -> float:
    return line.at
