"""MCP servers as a Messages request declares them: `mcp_servers`, and a toolset for each of them.

Before there were toolsets (beta 2025-04-04) a server carried its `tool_configuration` itself.
"""

from __future__ import annotations

import msgspec

from protocols import bodies
from protocols.anthropic import wire
from turns.servers import ToolFilter, ToolServer

TOOLSET = "mcp_toolset"


def servers(request: wire.Request) -> tuple[ToolServer, ...]:
    """The servers of a request, those that no toolset wants left out."""
    declared = [
        (f"tools.{at}", tool) for at, tool in enumerate(request.tools or ()) if tool.type == TOOLSET
    ]
    wanted = {tool.mcp_server_name: (where, tool) for where, tool in declared}
    known = {server.name for server in request.mcp_servers or ()}
    for name, (where, _) in wanted.items():
        if name not in known:
            expected = f"There is no server {name!r} among mcp_servers"
            raise bodies.invalid(f"{where}.mcp_server_name", expected)
    found = []
    for at, server in enumerate(request.mcp_servers or ()):
        where = f"mcp_servers.{at}"
        if not server.name or not server.url:
            missing = "url" if server.name else "name"
            raise bodies.invalid(f"{where}.{missing}", "Field required")
        allowed, denied = ToolFilter(), tuple[str, ...]()
        listed = None
        if declared:
            if server.name not in wanted:
                continue
            at_tool, toolset = wanted[server.name]
            said = _said(toolset, at_tool)
            allowed, denied = _of_toolset(said)
            listed = None if said.tools is None else tuple(said.tools)
        elif server.tool_configuration is not None:
            config = server.tool_configuration
            if config.enabled is False:
                continue
            names = config.allowed_tools
            allowed = ToolFilter(None if names is None else tuple(names))
        found.append(
            ToolServer(
                server.name,
                server.url,
                where=where,
                authorization=server.authorization_token or "",
                allowed=allowed,
                denied=denied,
                listed=listed,
            )
        )
    return tuple(found)


def _said(toolset: wire.WireTool, where: str) -> wire.ToolConfigs:
    try:
        return msgspec.convert(toolset, wire.ToolConfigs, from_attributes=True)
    except msgspec.ValidationError as error:
        raise bodies.fault(error, where) from None


def _of_toolset(said: wire.ToolConfigs) -> tuple[ToolFilter, tuple[str, ...]]:
    configs, default = said.configs or {}, said.default_config
    if default is not None and default.enabled is False:
        return ToolFilter(tuple(name for name, one in configs.items() if one.enabled)), ()
    return ToolFilter(), tuple(name for name, one in configs.items() if one.enabled is False)
