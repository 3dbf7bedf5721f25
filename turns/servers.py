"""Tools that are called for the client, inside the turn: who serves them, and which are wanted."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class ToolFilter(Struct, frozen=True):
    """Some tools of a server: those named, and those that say that they only read; None is all."""

    names: tuple[str, ...] | None = None
    read_only: bool | None = None


class ToolServer(Struct, frozen=True):
    """A server whose tools are called for the client (MCP).

    `where` is its place in the request. `denied` are names of `allowed` that are taken out again. A
    tool that is in `ask` and not in `trusted` waits for the client's consent. `listed` are its
    tools as an earlier turn was told them: then it is not asked again.
    """

    label: str
    url: str
    where: str = ""
    authorization: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    allowed: ToolFilter = ToolFilter()
    denied: tuple[str, ...] = ()
    ask: ToolFilter | None = None
    trusted: ToolFilter | None = None
    listed: tuple[dict[str, Any], ...] | None = None


class Served(Struct, frozen=True):
    """Of a tool that is called for the client: its server, its name there, whether to ask first."""

    server: str
    name: str
    ask: bool = False
