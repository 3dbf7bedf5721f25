"""A gateway with scripted tools, and every ending as a client would bring it about."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import ClassVar

from mcp import Client

from tests.toolruns.streams import rows
from toolruns.contract import Cadence, Column, Contract, Defaults, Mode
from toolruns.gateway.app import Gateway
from toolruns.gateway.calls import Calls, Settings
from toolruns.rows.books import FolderBook
from toolruns.rows.drill import DrillLimits
from toolruns.rows.keeper import Keeper
from toolruns.rows.sandbox import Sandbox
from toolruns.rows.store import Limits, RowStore
from toolruns.signals import Chunk, Exhausted, Truncated
from toolruns.sources.source import SourceError
from toolruns.tool import Tool

ERAS = {"modern": "2026-07-28", "legacy": "legacy"}
PARAMETERS = {
    "type": "object",
    "properties": {
        "do": {"enum": ["end", "endless", "silent", "stuck", "fail", "cut"]},
        "pause": {"type": "number"},
    },
    "required": ["do"],
}


class Scripted:
    """A source that does as it is told. `all` remembers those that were made."""

    all: ClassVar[list[Scripted]] = []

    def __init__(self, mode: Mode, do: str, pause: float = 0.005, cursor: str = "") -> None:
        self.mode, self.do, self.pause = mode, do, pause
        self.reads = 0
        self.begin = int(cursor or 0)
        self.opened = self.closed = False
        Scripted.all.append(self)

    async def open(self) -> None:
        self.opened = True

    async def read(self, wanted):
        self.reads += 1
        await asyncio.sleep(self.pause)
        if self.do == "fail":
            message = "no such shop"
            raise SourceError(message)
        if self.do == "cut":
            return Truncated("limit of the API")
        if self.do == "stuck" or (self.do == "silent" and self.reads > 1):
            await asyncio.Event().wait()
        if self.do == "end" and self.reads > 3:
            return Exhausted()
        start = self.begin + (self.reads - 1) * 32
        return Chunk(
            rows(32, start), 768, last=self.mode == "request_response", cursor=str(start + 32)
        )

    async def close(self) -> None:
        self.closed = True


def tool(mode: Mode = "chunked", name: str = "orders", **limits) -> Tool:
    contract = Contract(
        mode,
        columns=(Column("user_id", key=True),),
        resumable=True,
        synopsis=Cadence(every_chunks=2, every_seconds=0.1),
        defaults=Defaults(
            **{"max_seconds": 10.0, "idle_seconds": 8.0, "yield_after_seconds": 9.0, **limits}
        ),
    )
    return Tool(
        name,
        "Orders of a shop.",
        contract,
        lambda arguments, cursor: Scripted(
            mode, arguments["do"], arguments.get("pause", 0.005), cursor
        ),
        PARAMETERS,
    )


class House:
    """One gateway, its folder, and clients of it."""

    def __init__(self, path, tools, *, limits=None, settings=None, **more) -> None:
        self.store = RowStore(path / "rows", limits or Limits())
        self.wall_shift = 0.0
        self.keeper = Keeper(
            FolderBook(path / "rows"), self.store, wall=lambda: time.time() + self.wall_shift
        )
        self.sandbox = Sandbox(path / "rows", DrillLimits(seconds=5.0))
        self.calls = Calls(
            tools, self.keeper, self.sandbox, settings=settings or Settings(), **more
        )
        self.gateway = Gateway(self.calls)
        Scripted.all.clear()

    @asynccontextmanager
    async def client(self, era="modern", **options):
        async with Client(self.gateway.server, mode=ERAS[era], **options) as client:
            yield client

    def reason(self, handle: str) -> str | None:
        """How a trajectory ended, by its record."""
        ended = [e for e in self.store.events(handle) if e.type == "trajectory.terminated"]
        assert len(ended) <= 1
        return ended[0].data["reason"] if ended else None

    def handles(self) -> list[str]:
        return sorted(
            (p.name for p in self.store.root.glob("trj_*")),
            key=lambda h: (self.store.root / h).stat().st_mtime,
        )


@asynccontextmanager
async def house(path, *tools, **options):
    made = House(path, list(tools) or [tool()], **options)
    try:
        yield made
    finally:
        await made.calls.drain()


def text_of(result) -> str:
    assert len(result.content) == 1
    assert result.structured_content is None
    return result.content[0].text


def view_of(result) -> dict:
    return (result.meta or {}).get("dev.treadle/trajectory", {})


async def call(client, name, /, **arguments):
    async with asyncio.timeout(30):
        return await client.call_tool(name, arguments)


async def eventually(condition):
    """Wait until something that happens elsewhere has happened."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (what it waits for has no event to set)
            await asyncio.sleep(0.005)
