"""What an open console is told first, and then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from actors.board import ALL, FEED, BoardSettings
from actors.console import Console
from actors.news import News, Reader
from sessions.memory_store import MemoryStore


class Rig:
    def __init__(self) -> None:
        self.store = MemoryStore()
        self.console = Console(self.store, BoardSettings())
        self.news = News(self.console, self.fleet, every=0.01)

    async def fleet(self) -> list[Any]:
        return []

    async def ended(self, entry: str) -> None:
        await self.store.append(FEED, "", ALL, [entry], ttl=60, keep=256)


@pytest.fixture
def rig() -> Rig:
    return Rig()


async def told(pieces: AsyncIterator[bytes]) -> dict[str, Any]:
    """What is told next."""
    async with asyncio.timeout(10):
        async for piece in pieces:
            if b"data: " in piece:
                data: dict[str, Any] = json.loads(piece.partition(b"data: ")[2])
                return data
    raise AssertionError


async def opened(reader: Reader) -> AsyncIterator[bytes]:
    """The reader's news, after its first: that it missed something, and what is in the air."""
    pieces = reader.pieces()
    assert await told(pieces) == {"sessions": [], "live": 0, "missed": True}
    return pieces


async def test_who_comes_back_is_told_that_something_was_missed(rig: Rig) -> None:
    """A stream is cut every two minutes: what ends until the next one opens is in no news."""
    async with rig.news.reading("turns") as reader:
        await opened(reader)
    await rig.ended("i/0/between")
    async with rig.news.reading("turns") as reader:
        await opened(reader)


async def test_who_comes_later_is_told_so_too_and_nobody_else(rig: Rig) -> None:
    async with rig.news.reading("turns") as first:
        before = await opened(first)
        async with rig.news.reading("turns") as second:
            after = await opened(second)
            await rig.ended("i/0/s")
            for pieces in (before, after):
                assert await told(pieces) == {"sessions": ["s"], "live": 0, "missed": False}


async def test_who_reads_the_pages_at_some_news_sees_what_it_is_of(rig: Rig) -> None:
    async def read() -> int:
        return next(numbers)

    numbers = iter(range(9))
    assert [await rig.console._once("rows", read) for _ in range(2)] == [0, 0]
    async with rig.news.reading("turns") as reader:
        await opened(reader)
        assert await rig.console._once("rows", read) == 1
