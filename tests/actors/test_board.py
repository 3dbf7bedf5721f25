"""What the boards of ingresses write, and the console reads: which sessions are there, and when."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from actors.board import ALL, INGRESSES, RETELL, ROWS, Board, BoardSettings
from actors.console import Console
from actors.model_names import ModelNames
from actors.prefixes import Prefixes
from observe.record import Line, Row
from observe.recorder import Recorder
from observe.seen import Names, TurnReceived
from sessions.memory_store import MemoryStore

HOUR = 3600.0
FEW = 5


class Rig:
    """A board at work, and the console that reads what it wrote. Time is moved by hand."""

    def __init__(self, sessions: int = FEW) -> None:
        self.now = 1000.0
        self.store = MemoryStore(clock=lambda: self.now)
        self.settings = BoardSettings(sessions=sessions)
        self.recorder = Recorder()
        prefixes = Prefixes(lambda *_: None, ModelNames([]).model)
        self.board = Board(
            self.store, "a", recorder=self.recorder, prefixes=prefixes, settings=self.settings
        )
        self._numbers = itertools.count()

    async def end(self, *sessions: str) -> None:
        """A turn of each comes to its end now, one a second."""
        for session in sessions:
            self.now += 1
            line = Line(f"t{next(self._numbers)}", session, self.now - 1, input=10, seconds=1.0)
            self.board._over(line, "", ())
        await asyncio.wait_for(self.board.settled(), 10)

    async def rows(self) -> list[Row]:
        """The sessions shown, read anew."""
        page = await Console(self.store, self.settings).sessions()
        assert page.total == len(page.sessions)
        return page.sessions

    async def shown(self) -> list[str]:
        return [row.session for row in await self.rows()]


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    made = Rig()
    monkeypatch.setattr(made.board, "_beat_forever", asyncio.Event().wait)
    running = asyncio.ensure_future(made.board.run_forever())
    yield made
    running.cancel()


async def test_a_session_at_work_is_shown_however_long_it_works(rig: Rig) -> None:
    for _ in range(50):  # more than eight hours, where six are kept
        await rig.end("busy")
        (row,) = await rig.rows()
        rig.now += 600
    assert row.turns == 50


async def test_a_session_is_shown_for_as_long_as_its_row_is_kept(rig: Rig) -> None:
    await rig.end("quiet")
    rig.now += RETELL * rig.settings.ttl - 10
    await rig.end("quiet")  # too early to tell its name again
    rig.now += rig.settings.ttl - 10
    assert await rig.shown() == ["quiet"]
    rig.now += 20
    assert await rig.shown() == []


async def test_a_session_at_work_stays_while_many_others_come(rig: Rig) -> None:
    for n in range(60):
        await rig.end(f"other{n}", "busy")
    assert await rig.shown() == ["busy", *(f"other{n}" for n in (59, 58, 57, 56))]


async def test_a_quiet_session_stays_while_few_others_work(rig: Rig) -> None:
    """However often their names are told again: fewer sessions than are kept are later than it."""
    others = [f"busy{n}" for n in range(FEW - 1)]
    await rig.end(*(f"old{n}" for n in range(FEW)), *others, "quiet")
    begun = rig.now
    while rig.now - begun < rig.settings.ttl - HOUR / 6:
        await rig.end(*others)
        assert await rig.shown() == [*reversed(others), "quiet"]
        rig.now += HOUR / 10


async def test_the_sessions_of_the_latest_turns_are_shown(rig: Rig) -> None:
    names = [f"s{n}" for n in range(3 * FEW)]
    await rig.end(*names)
    assert await rig.shown() == names[: -FEW - 1 : -1]


async def test_a_session_comes_back_to_a_store_that_lost_everything(rig: Rig) -> None:
    await rig.end("busy")
    await rig.store.close()  # it forgets all
    await rig.end("busy")
    assert await rig.shown() == []
    rig.now += RETELL * rig.settings.ttl
    await rig.end("busy")
    assert [(row.session, row.turns) for row in await rig.rows()] == [("busy", 3)]


async def test_a_session_whose_row_is_gone_is_what_its_turns_say(rig: Rig) -> None:
    await rig.end("s", "s", "s")
    await rig.store.delete(ROWS, "", ALL)
    view = await Console(rig.store, rig.settings).session("s")
    assert (view.session.turns, view.session.input) == (3, 30)
    assert (view.session.first, view.session.last) == (1000.0, 1003.0)
    assert len(view.turns) == 3


async def test_all_turns_in_the_air_are_counted_and_the_latest_shown(rig: Rig) -> None:
    await rig.store.append(INGRESSES, "", ALL, ["a"], ttl=60, keep=9)
    most = rig.settings.live
    for n in range(most + 50):
        names = Names(f"t{n}", "r", "s", "chat", "m")
        rig.recorder.turn_received(TurnReceived(names, 1.0, stream=True))
    await rig.board.beat()
    console = Console(rig.store, rig.settings)
    assert (await console.sessions()).live == most + 50
    lines = (await console.live()).lines
    assert [line.turn for line in lines] == [f"t{n}" for n in range(50, most + 50)]
