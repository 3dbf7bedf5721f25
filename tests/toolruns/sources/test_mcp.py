from __future__ import annotations

import asyncio
import json

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server

from tests.toolruns.sources.play import Watching, play, read_all
from toolruns.endings import Ending
from toolruns.sources.mcp_pages import McpPages, McpTool
from toolruns.sources.source import SourceError

PAGES = 100


class Upstream:
    """An MCP server with one paginated tool; it remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.cancelled = asyncio.Event()
        self.structured = False
        self.text = ""
        self.fail = False
        self.stall = False
        self.server = Server("upstream", on_list_tools=self.tools, on_call_tool=self.call)

    async def tools(self, ctx, params):
        return types.ListToolsResult(
            tools=[types.Tool(name="list", input_schema={"type": "object"})]
        )

    async def call(self, ctx, params):
        arguments = params.arguments or {}
        self.asked.append(arguments)
        if self.stall:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        at = int(arguments.get("cursor", "0"))
        body = {"items": [{"id": at * 10 + n} for n in range(10)]}
        if at + 1 < PAGES:
            body["next"] = str(at + 1)
        text = types.TextContent(type="text", text=self.text or json.dumps(body))
        return types.CallToolResult(
            content=[text], structured_content=body if self.structured else None, is_error=self.fail
        )


@pytest.fixture
def upstream():
    return Upstream()


PAGED = McpTool(tool="list", items="items", cursor="cursor", next="next")


@pytest.mark.parametrize("structured", [True, False])
async def test_cursors_are_hidden_and_every_page_comes(upstream, structured):
    upstream.structured = structured
    found = await read_all(McpPages(upstream.server, PAGED, {"shop": "x"}))
    assert [row["id"] for row in found] == list(range(PAGES * 10))
    assert upstream.asked[0] == {"shop": "x"}
    assert upstream.asked[1] == {"shop": "x", "cursor": "1"}


async def test_three_of_a_hundred_pages_are_asked_for(upstream):
    watched = Watching(McpPages(upstream.server, PAGED, {}))
    live, view, ending = await play(watched, "count >= 25", mode="paginated")
    assert (ending, len(upstream.asked), view["pages"]) == (Ending.PREDICATE_SATISFIED, 3, 3)
    assert watched.closed == 1
    assert live.closed_in < 0.25


async def test_a_stalled_tool_is_cancelled_upstream(upstream):
    upstream.stall = True
    live, _, ending = await play(
        McpPages(upstream.server, PAGED, {}), mode="paginated", seconds=0.5
    )
    assert ending is Ending.BUDGET_WALL_CLOCK
    assert live.closed_in < 0.25
    async with asyncio.timeout(5):
        await upstream.cancelled.wait()


async def test_a_one_shot_tool_is_one_chunk(upstream):
    upstream.text = "first\nsecond"
    found = await read_all(McpPages(upstream.server, McpTool(tool="list"), {}))
    assert found == [{"line": "first"}, {"line": "second"}]


async def test_a_tool_error_ends_the_run_with_its_text(upstream):
    upstream.fail, upstream.text = True, "no such shop"
    _, view, ending = await play(McpPages(upstream.server, PAGED, {}), mode="paginated")
    assert ending is Ending.UPSTREAM_ERROR
    assert "no such shop" in view["notes"][-1]


async def test_an_answer_without_items_is_told(upstream):
    upstream.text = '{"rows": []}'
    with pytest.raises(SourceError, match="nothing at items"):
        await read_all(McpPages(upstream.server, PAGED, {}))


async def test_a_server_that_is_not_there(free_port):
    _, view, ending = await play(
        McpPages(f"http://127.0.0.1:{free_port}/mcp", PAGED, {}), mode="paginated"
    )
    assert ending is Ending.UPSTREAM_ERROR
    assert "cannot be reached" in view["notes"][-1]
