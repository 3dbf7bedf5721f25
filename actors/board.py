"""The board: what this ingress has seen, written to the store for the console of any ingress.

Turns are told to it by its recorder, a tap. Nothing is written while a turn runs: lines of turns
that are over wait in a bounded queue for one task that works them off in batches, beside the loop
where that takes long. What a store that is away does not take is written when it is back; what is
too much to wait is lost, and costs no turn.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import asdict, replace

from actors.prefixes import Prefixes, Whole
from observe.record import Detail, Line, Part, PrefixBreak, Row, Span, seen_in
from observe.recorder import Recorder
from prompts.outline import outline
from prompts.prompter import Plan
from protocols import ids
from sessions.records import Kind
from sessions.store import Store, Write, write
from turns.blocks import ToolCall
from turns.errors import TreadleError

log = logging.getLogger(__name__)


class Live(Struct):
    """An ingress as it is now: so many turns in the air there, and the latest of them."""

    at: float
    lines: list[Line]
    count: int = 0


LINES = Kind("seen_lines", Line)  # of a session: its turns that are over, a list
ROW = Kind("seen_row", Row)  # of a session at an ingress
ROWS = Kind("seen_rows", str)  # the names of all rows, the one told last at the end, a list
DETAIL = Kind("seen_detail", Detail)  # of a turn, in one of an ingress's slots
LIVE = Kind("seen_live", Live)  # of an ingress
INGRESSES = Kind("seen_ingresses", str)  # a list
FEED = Kind("seen_feed", str)  # `ingress/number/session` of each that had a turn end, a list

ALL = "all"
WAITING = 2048
"""Lines of turns that are over and not yet written; more of them push the oldest out."""
BATCH = 64
BUSY = 32
"""Waiting lines from which prompts are not taken apart any more."""
BEAT = 2.0
"""Seconds between two looks at what is in the air."""
AGAIN = 0.5
"""Seconds after which a write that the store did not take is made again."""

RETELL = 0.25
"""The part of its `ttl` after which the name of a session at work is told again. The list of names
lives that much longer than a row: a name told just before the last turn outlives its row.
"""
KEEP = 6
"""Names in the list for each session that is kept. A name is told again where as many others were
told since as sessions are kept, and by time four times in the life of a row. So where fewer
sessions than that had turns after a session's last one, its name has at most one time as many
behind it that were told before that turn, and five times as many that were told after.
"""

Step = Callable[[], Awaitable[bool]]


class BoardSettings(Struct, frozen=True):
    """How much is kept: for `ttl` seconds, so many sessions in all, turns of each, turns of an
    ingress in detail; of a prompt so many blocks, and the first `tokens` of each (0: no text).
    """

    ttl: float = 6 * 3600.0
    sessions: int = 5000
    turns: int = 64
    details: int = 512
    parts: int = 256
    tokens: int = 120
    live: int = 200
    redact: bool = False


class Known(Struct):
    """A session's row here, when its name was last told, and as which of all that were told."""

    row: Row
    told_at: float = 0.0
    told_as: int = -1


class Board:
    """One per ingress; `name` is unique among them."""

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        recorder: Recorder,
        prefixes: Prefixes,
        settings: BoardSettings,
    ) -> None:
        self.missed = 0
        self.settings = settings
        self.recorder = recorder
        recorder.over = self._over
        self._store = store
        self._name = name
        self._prefixes = prefixes
        self._waiting: deque[tuple[Line, Detail]] = deque()
        self._news = asyncio.Event()
        self._rows: OrderedDict[str, Known] = OrderedDict()
        self._slot = self._entries = self._names_told = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def _over(self, line: Line, message: str, ignored: Sequence[str]) -> None:
        told = "" if self.settings.redact else message
        self._waiting.append((line, Detail(line.turn, message=told, ignored=list(ignored))))
        if len(self._waiting) > WAITING:
            self._waiting.popleft()
            self.missed += 1
        self._idle.clear()
        self._news.set()

    async def run_forever(self) -> None:
        """Write what waits as it comes, and what is in the air now and then."""
        beats = asyncio.ensure_future(self._beat_forever())
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                await self._work_off()
                self._idle.set()
        finally:
            beats.cancel()

    async def settled(self) -> None:
        """Wait until every turn that is over is written (or was too much to wait)."""
        await self._idle.wait()

    async def beat(self) -> None:
        """Tell what is in the air."""
        lines = self.recorder.in_the_air(self.settings.live)
        live = Live(time.time(), lines, self.recorder.count)
        await self._store.put(write(LIVE, "", self._name, live, ttl=3 * BEAT))

    async def _beat_forever(self) -> None:
        beats = 0
        while True:
            if beats % 15 == 0:
                await self._store.append(INGRESSES, "", ALL, [self._name], ttl=120, keep=64)
            beats += 1
            await self.beat()
            await asyncio.sleep(BEAT)

    async def _work_off(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                await self._prefixes.noted()
                busy = len(self._waiting) > BUSY
                broken = await asyncio.to_thread(self._taken_apart, batch, busy=busy)
                for line, detail, before in broken:
                    detail.broken = await self._explained(line, before)
                for step in self._steps(batch):
                    while not await step():  # noqa: ASYNC110 - the store tells nobody
                        await asyncio.sleep(AGAIN)
            except Exception:
                self.missed += len(batch)
                log.exception("%d turns are not on the board", len(batch))

    def _taken_apart(
        self, batch: list[tuple[Line, Detail]], *, busy: bool
    ) -> list[tuple[Line, Detail, str]]:
        """Add what is known of the turns here; gives those whose prefix broke, with the turn that
        each should have gone on from.
        """
        broken = []
        for line, detail in batch:
            whole = self._prefixes.whole(line.turn)
            if whole is None:
                continue
            line.spans = called(line.spans, whole)
            detail.tools = len(whole.turn.tools)
            if (found := self._prefixes.taken_break(line.turn)) is not None:
                line.broken = found[0]
                broken.append((line, detail, found[1]))
            if not busy and whole.plan is not None:
                detail.parts, detail.left_out = self._parts(whole, whole.plan)
        return broken

    def _parts(self, whole: Whole, plan: Plan) -> tuple[list[Part], int]:
        settings = self.settings
        found, before = outline(
            self._prefixes.prompter(whole.turn.model),
            plan,
            whole.ids,
            most=settings.parts,
            tokens=0 if settings.redact else settings.tokens,
        )
        return [Part(s.role, s.start, s.end, s.text) for s in found], before

    async def _explained(self, line: Line, before: str) -> PrefixBreak:
        """The break as the doctor sees it; its cause alone where too little is known."""
        try:
            _, found = await self._prefixes.report(line.owner, line.turn, before)
        except TreadleError:
            found = None
        if found is None:
            return PrefixBreak(-1, -1, "", line.broken)
        told = PrefixBreak(**asdict(found))
        return replace(told, before="", after="") if self.settings.redact else told

    def _steps(self, batch: Sequence[tuple[Line, Detail]]) -> list[Step]:
        """What is to be written of the batch, each step until the store has it."""
        ttl, fresh, ended = self.settings.ttl, [], OrderedDict[str, list[Line]]()
        writes: dict[str, Write] = {}
        for line, detail in batch:
            slot = f"{self._name}/{self._slot}"
            self._slot = (self._slot + 1) % self.settings.details
            line.slot = slot
            writes[slot] = write(DETAIL, "", slot, detail, ttl=ttl)
            ended.setdefault(line.session, []).append(line)
            name = f"{self._name}/{line.session}"
            row, untold = self._row(line)
            if untold:
                fresh.append(name)
            writes[name] = write(ROW, "", name, row, ttl=ttl)
        append = partial(self._store.append, ttl=ttl)
        turns, sessions = self.settings.turns, self.settings.sessions
        return [
            partial(self._store.put, *writes.values()),
            *(partial(append, LINES, "", name, lines, keep=turns) for name, lines in ended.items()),
            partial(
                self._store.append,
                ROWS,
                "",
                ALL,
                fresh,
                ttl=ttl * (1 + RETELL),
                keep=KEEP * sessions,
            ),
            partial(append, FEED, "", ALL, self._told(ended), keep=256),
        ]

    def _told(self, sessions: Collection[str]) -> list[str]:
        """Entries of the feed: no two are the same."""
        self._entries, first = self._entries + len(sessions), self._entries
        return [f"{self._name}/{first + n}/{session}" for n, session in enumerate(sessions)]

    def _row(self, line: Line) -> tuple[Row, bool]:
        """The row of the line's session with the line in it, and whether to tell its name (again):
        the list of names is trimmed by when they were told, whether or not they are at work since.
        """
        known = self._rows.get(line.session)
        if known is None:
            known = Known(Row(line.session, line.key, line.owner, line.at, line.at))
            self._rows[line.session] = known
        self._rows.move_to_end(line.session)
        while len(self._rows) > self.settings.sessions:
            self._rows.popitem(last=False)
        seen_in(known.row, line)
        now = line.at + line.seconds
        untold = (
            known.told_as < 0
            or now - known.told_at > RETELL * self.settings.ttl
            or self._names_told - known.told_as > self.settings.sessions
        )
        if untold:
            known.told_at, known.told_as = now, self._names_told
            self._names_told += 1
        return known.row, untold


def called(spans: Sequence[Span], whole: Whole) -> list[Span]:
    """The spans, with each call's id as its client was told it."""
    spell = ids.tool_use if whole.turn.api == "messages" else ids.call
    calls = [block for block in whole.answer if isinstance(block, ToolCall)]
    names = iter([spell(call.id, whole.turn.id, n) for n, call in enumerate(calls)])
    return [
        replace(span, call=next(names, "")) if span.kind == "call" and not span.cut else span
        for span in spans
    ]
