"""MCP servers as a Responses request declares them: `{"type": "mcp", "server_label": …}`."""

from __future__ import annotations

from typing import Any

import msgspec

from protocols import bodies
from turns.servers import ToolFilter, ToolServer


class WireFilter(msgspec.Struct):
    tool_names: list[str] | None = None
    read_only: bool | None = None


class WireApproval(msgspec.Struct):
    always: WireFilter | None = None
    never: WireFilter | None = None


class WireServer(msgspec.Struct):
    server_label: str = ""
    server_url: str | None = None
    authorization: str | None = None
    headers: dict[str, str] | None = None
    allowed_tools: list[str] | WireFilter | None = None
    require_approval: str | WireApproval | None = None


def read(value: dict[str, Any], where: str) -> ToolServer | None:
    """The server; None for one without a URL (a connector), which only OpenAI can reach."""
    try:
        wire = msgspec.convert(value, WireServer)
    except msgspec.ValidationError as error:
        raise bodies.fault(error, where) from None
    if not wire.server_url:
        return None
    if not wire.server_label:
        raise bodies.invalid(f"{where}.server_label", "Field required")
    allowed = wire.allowed_tools
    ask, trusted = _approval(wire.require_approval, where)
    return ToolServer(
        wire.server_label,
        wire.server_url,
        where=where,
        authorization=wire.authorization or "",
        headers=wire.headers or {},
        allowed=ToolFilter(tuple(allowed)) if isinstance(allowed, list) else _filter(allowed),
        ask=ask,
        trusted=trusted,
    )


def _filter(wire: WireFilter | None) -> ToolFilter:
    if wire is None:
        return ToolFilter()
    names = None if wire.tool_names is None else tuple(wire.tool_names)
    return ToolFilter(names, wire.read_only)


def _approval(
    given: str | WireApproval | None, where: str
) -> tuple[ToolFilter | None, ToolFilter | None]:
    """Which calls to ask about, and which of those not. What is not said is asked about."""
    if isinstance(given, WireApproval):
        if given.never is None:
            return _filter(given.always), None
        return ToolFilter(), _filter(given.never)
    if given in (None, "always"):
        return ToolFilter(), None
    if given == "never":
        return None, None
    expected = "Input should be 'always', 'never' or an object"
    raise bodies.invalid(f"{where}.require_approval", expected)


def shown(tool: dict[str, Any]) -> dict[str, Any]:
    """A server as a response repeats it: without what opens its doors."""
    hidden = {name: None for name in ("authorization", "headers") if tool.get(name)}
    return tool | hidden
