"""Who calls, as far as the protocol tells, and how the caller is kept informed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from toolruns.trajectory import Entry

HEARTBEAT = 10.0
"""Seconds after which a silent call sends progress, so that no idle timeout strikes."""
LONGEST = 200

Report = Callable[[float, str], Awaitable[None]]


class Caller(Struct, frozen=True):
    """One call's origin. `modern` is the era without sessions, in which closing the response is
    how a client cancels. `principal` owns what the call makes.
    """

    principal: str
    client: str = ""
    modern: bool = True
    version: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)


class Progress:
    """Turns synopses into progress messages, each a line for a person or the `whole` synopsis as
    JSON. Numbers only grow, as the protocol demands.
    """

    def __init__(self, report: Report, *, whole: bool = False) -> None:
        self._report = report
        self._spell = synopsis_of if whole else message_of
        self._last = -1.0
        self._latest: dict[str, Any] | None = None
        self._news = asyncio.Event()

    def shown(self, snapshot: dict[str, Any]) -> None:
        self._latest = snapshot
        self._news.set()

    def noted(self, entry: Entry) -> None:
        """The record is kept elsewhere."""

    async def run(self) -> None:
        """Report until cancelled: every synopsis, and a heartbeat where there is none."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), HEARTBEAT)
            self._news.clear()
            rows = float(self._latest["rows"]) if self._latest else 0.0
            self._last = max(rows, self._last + 0.001)
            await self._report(self._last, self._spell(self._latest))


def synopsis_of(snapshot: dict[str, Any] | None) -> str:
    """The synopsis as JSON, without its rows, for a client that hands it on to programs."""
    if snapshot is None:
        return message_of(None)
    shown = {key: value for key, value in snapshot.items() if key not in {"head", "sample"}}
    return msgspec.json.encode(shown).decode()


def message_of(snapshot: dict[str, Any] | None) -> str:
    """One line for a person: "1,500 rows, 97 user_id, settling"."""
    if snapshot is None:
        return "waiting for the first rows"
    parts = [f"{snapshot['rows']:,} rows"]
    for column in snapshot.get("columns", []):
        if column.get("state") and column.get("distinct") is not None:
            parts.append(f"{column['distinct']:,} {column['name']}")
            break
    parts.append(snapshot["verdict"])
    return ", ".join(parts)[:LONGEST]
