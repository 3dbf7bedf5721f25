"""What the servers of a turn offer: asked once, remembered for a while."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from actors.server_tools.allowed import AllowList, Target
from protocols import tool_servers
from turns.errors import InvalidRequestError
from turns.servers import ToolServer
from turns.turn import Tool, Turn

FRESH = 60.0
"""Seconds for which a list of tools is taken as it was."""
MOST = 256
LISTED = "listed"

Listing = tuple[dict[str, Any], ...]


class Listings:
    """One per ingress. `within`: seconds that a server may take to list its tools."""

    def __init__(self, allowed: AllowList, *, within: float) -> None:
        self._allowed = allowed
        self._within = within
        self._known: OrderedDict[Target, tuple[float, Listing]] = OrderedDict()

    async def equipped(self, turn: Turn, headers: Mapping[str, str]) -> Turn:
        """The turn with its servers' tools behind its own; `echo` says which lists are news.

        Raises InvalidRequestError: a server is not allowed, cannot be asked, or has no such tool.
        """
        targets = [self._allowed.target(server, headers) for server in turn.servers]
        listings = await asyncio.gather(
            *(self._of(one, target) for one, target in zip(turn.servers, targets, strict=True))
        )
        tools = list(turn.tools)
        known = {tool.name for tool in tools}
        for server, listing in zip(turn.servers, listings, strict=True):
            for tool in tool_servers.offered(server, listing):
                _check_new(tool, known, server)
                known.add(tool.name)
                tools.append(tool)
        choice = turn.tool_choice
        if choice.mode == "named" and choice.name not in known:
            message = f"The tool '{choice.name}' is not among the tools"
            raise InvalidRequestError(message, param="tool_choice")
        news = [
            (server.label, listing)
            for server, listing in zip(turn.servers, listings, strict=True)
            if server.listed is None
        ]
        return replace(turn, tools=tuple(tools), echo={**turn.echo, LISTED: news})

    async def _of(self, server: ToolServer, target: Target) -> Listing:
        if server.listed is not None:
            return server.listed
        now = time.monotonic()
        found = self._known.get(target)
        if found is not None and now - found[0] < FRESH:
            return found[1]
        listing = await _ask(server, target, self._within)
        self._known[target] = (now, listing)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return listing


async def _ask(server: ToolServer, target: Target, within: float) -> Listing:
    try:
        from actors.server_tools.upstream import (  # noqa: PLC0415 - the extra `tools`
            ServerLostError,
            list_tools,
        )
    except ImportError:
        message = "MCP servers need the extra `tools` on this server; ask its operator"
        raise InvalidRequestError(message, param=server.where) from None
    try:
        return await list_tools(target, within)
    except ServerLostError as error:
        message = f"The MCP server '{server.label}' {error}"
        raise InvalidRequestError(message, param=server.where) from None


def _check_new(tool: Tool, known: set[str], server: ToolServer) -> None:
    if tool.name in known:
        message = f"There are two tools '{tool.name}'; rename one of the servers"
        raise InvalidRequestError(message, param=server.where)
