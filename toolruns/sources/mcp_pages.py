"""Any MCP server's tool as a source: its cursors are hidden, its pages become chunks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
from mcp import Client
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from toolruns.signals import Chunk, Exhausted
from toolruns.sources.records import Records, dig
from toolruns.sources.source import Answer, SourceError

CONNECT_WITHIN = 10.0


class McpTool(Struct, frozen=True, kw_only=True):
    """A tool of an upstream server. `cursor` is its argument, `next` the dotted path of the next
    cursor in its answer, `items` that of the rows; without `next` the answer is one page.
    """

    tool: str
    items: str = ""
    cursor: str = ""
    next: str = ""


class McpPages:
    """A Source. `target` is what `mcp.Client` takes: a URL, or a server in this process.

    The client must be entered and left by one task, so it lives in a task of its own.
    """

    def __init__(
        self, target: Any, upstream: McpTool, arguments: dict[str, Any], cursor: str = ""
    ) -> None:
        self._target = target
        self._upstream = upstream
        self._arguments = arguments
        self._next: str | None = cursor
        self._records = Records()
        self._calls: asyncio.Queue[tuple[dict[str, Any], asyncio.Future[Any]]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None

    async def open(self) -> None:
        self._ready = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(self._ready))
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), CONNECT_WITHIN)
        except TimeoutError:
            message = "the upstream MCP server does not answer"
            raise SourceError(message) from None

    async def read(self, rows: int) -> Answer:
        if self._next is None:
            return Exhausted()
        arguments = dict(self._arguments)
        if self._upstream.cursor and self._next:
            arguments[self._upstream.cursor] = self._next
        result = await self._call(arguments)
        body, size = _body(result)
        items = dig(body, self._upstream.items)
        if items is None:
            where = self._upstream.items or "the top"
            message = f"the upstream tool's answer has nothing at {where}"
            raise SourceError(message)
        before, found = self._next, dig(body, self._upstream.next) if self._upstream.next else None
        self._next = str(found) if found not in (None, "", False) else None
        if self._next is not None and self._next == before:
            message = "the upstream gave the same cursor twice"
            raise SourceError(message)
        batch = self._records.batch(items if isinstance(items, list) else [items])
        return Chunk(batch, size, last=self._next is None, cursor=self._next or "")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._task

    async def _call(self, arguments: dict[str, Any]) -> Any:
        if self._task is None or self._task.done():
            message = "the upstream MCP server is gone"
            raise SourceError(message)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.put_nowait((arguments, answer))
        done, _ = await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if answer not in done:
            message = "the upstream MCP server is gone"
            raise SourceError(message)
        return answer.result()

    async def _serve(self, ready: asyncio.Future[None]) -> None:
        try:
            async with Client(self._target) as client:
                ready.set_result(None)
                while True:
                    arguments, answer = await self._calls.get()
                    await self._answer(client, arguments, answer)
        except Exception as error:  # noqa: BLE001 (whatever it raises, the run is told)
            if not ready.done():
                message = f"the upstream MCP server cannot be reached: {type(error).__name__}"
                ready.set_exception(SourceError(message))

    async def _answer(
        self, client: Client, arguments: dict[str, Any], answer: asyncio.Future[Any]
    ) -> None:
        try:
            result = await client.call_tool(self._upstream.tool, arguments)
        except MCPError as error:
            outcome: Any = SourceError(f"the upstream tool failed: {str(error)[:300]}")
        else:
            outcome = result
        if answer.done():
            return
        if isinstance(outcome, SourceError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)


def _body(result: Any) -> tuple[Any, int]:
    """The answer as a value, and its size: structured content, else its text as JSON or lines."""
    texts = [item.text for item in result.content if getattr(item, "text", None) is not None]
    text = "\n".join(texts)
    if result.is_error:
        message = f"the upstream tool failed: {text[:300]}"
        raise SourceError(message)
    if result.structured_content is not None:
        return result.structured_content, len(msgspec.json.encode(result.structured_content))
    try:
        return msgspec.json.decode(text), len(text.encode())
    except msgspec.DecodeError:
        return [{"line": line} for line in text.splitlines()], len(text.encode())
