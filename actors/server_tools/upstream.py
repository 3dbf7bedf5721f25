"""One MCP server, spoken to for one turn: its tools are listed and called, in either era.

Every request has a connection of its own: cancelling its task closes it, which is how a server
learns that nobody waits any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from actors.server_tools.allowed import Target

LARGEST = 256 * 1024
"""Bytes of a result that the model is given; our own gateway's are 2 KB."""
PAGES = 20
TOOLS = 512

T = TypeVar("T")
Told = Callable[[str], None]
"""Hears the interim results of a call."""


class Called(Struct, frozen=True):
    """What a call gave back, as the model reads it."""

    text: str
    is_error: bool = False


class ServerLostError(Exception):
    """The server did not do what it was asked; the message is for the client."""


async def list_tools(target: Target, within: float) -> tuple[dict[str, Any], ...]:
    """The server's tools, as `protocols.tool_servers` reads them. Raises ServerLostError."""
    return await _bounded(_list(target), within, "did not list its tools")


async def call_tool(
    target: Target,
    name: str,
    arguments: dict[str, Any],
    *,
    within: float,
    meta: Mapping[str, Any],
    told: Told,
) -> Called:
    """Call a tool to its end; an error of the tool is a result. Raises ServerLostError."""
    return await _bounded(_call(target, name, arguments, meta, told), within, "did not answer")


async def _list(target: Target) -> tuple[dict[str, Any], ...]:
    found: list[dict[str, Any]] = []
    async with _client(target) as client:
        cursor = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                hints = tool.annotations
                found.append(
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "input_schema": tool.input_schema,
                        "annotations": hints.model_dump(by_alias=True, exclude_none=True)
                        if hints
                        else None,
                    }
                )
            cursor = page.next_cursor
            if not cursor or len(found) >= TOOLS:
                break
    return tuple(found[:TOOLS])


async def _call(
    target: Target, name: str, arguments: dict[str, Any], meta: Mapping[str, Any], told: Told
) -> Called:
    async def progressed(
        progress: float,  # noqa: ARG001 - their names are part of the interface
        total: float | None,  # noqa: ARG001
        message: str | None,
    ) -> None:
        if message:
            told(message)

    async with _client(target) as client:
        try:
            result = await client.call_tool(
                name,
                arguments,
                progress_callback=progressed,
                meta=dict(meta) or None,  # type: ignore[arg-type] # more keys than it names
            )
        except MCPError as error:
            return Called(f"The tool failed: {str(error)[:1000]}", is_error=True)
    return Called(_text(result), bool(result.is_error))


@asynccontextmanager
async def _client(target: Target) -> AsyncIterator[Client]:
    headers = dict(target.headers)
    # No redirects: a server of the allow-list must not be able to send us elsewhere.
    async with httpx2.AsyncClient(headers=headers, timeout=None, trust_env=False) as http:
        transport = streamable_http_client(target.url, http_client=http)
        async with Client(transport) as client:
            yield client


async def _bounded(work: Awaitable[T], within: float, what: str) -> T:
    """In a task of its own: what an MCP client enters, the same task must leave."""
    task = asyncio.ensure_future(work)
    try:
        async with asyncio.timeout(within):
            return await asyncio.shield(task)
    except TimeoutError:
        message = f"{what} within {within:g} s"
        raise ServerLostError(message) from None
    except asyncio.CancelledError:
        raise
    except Exception as error:
        raise ServerLostError(f"{what} ({_cause(error)})") from error
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


def _cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__


def _text(result: Any) -> str:
    """The result as one text; what is no text is shown as its JSON."""
    parts = []
    for item in result.content:
        text = getattr(item, "text", None)
        parts.append(text if text is not None else item.model_dump_json(by_alias=True))
    if not parts and result.structured_content is not None:
        parts.append(msgspec.json.encode(result.structured_content).decode())
    whole = "\n".join(parts)
    if len(whole) <= LARGEST:
        return whole
    return f"{whole[:LARGEST]}\n[cut here: {len(whole) - LARGEST} more characters]"
