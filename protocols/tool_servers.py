"""Tools that the server side calls for the client (MCP), alike in every API that knows them.

The model knows such a tool as `mcp__label__name`, which is how the harnesses spell the tools of
their own servers: what one of them called, the other can go on from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turns.blocks import Message, ToolCall, ToolResult
from turns.servers import Served, ToolFilter, ToolServer
from turns.turn import Tool, Turn

BESIDE = "p"
"""What the id of a call ends in that the model made beside another one."""


def flat_name(label: str, name: str) -> str:
    """The name of a server's tool as the model knows it."""
    return f"mcp__{label}__{name}"


def matches(some: ToolFilter, name: str, *, read_only: bool) -> bool:
    """Whether a tool is among those that a filter means."""
    if some.names is not None and name not in some.names:
        return False
    return some.read_only is None or some.read_only == read_only


def offered(server: ToolServer, listing: Iterable[Mapping[str, Any]]) -> list[Tool]:
    """The tools of a server that the request wants the model to have, as the server lists them."""
    found = []
    for entry in listing:
        name = str(entry.get("name") or "")
        annotations = entry.get("annotations")
        hints = annotations if isinstance(annotations, Mapping) else {}
        read_only = bool(hints.get("readOnlyHint"))
        if not name or name in server.denied:
            continue
        if not matches(server.allowed, name, read_only=read_only):
            continue
        asks = server.ask is not None and matches(server.ask, name, read_only=read_only)
        if server.trusted is not None and matches(server.trusted, name, read_only=read_only):
            asks = False
        schema = entry.get("input_schema")
        found.append(
            Tool(
                flat_name(server.label, name),
                str(entry.get("description") or ""),
                schema if isinstance(schema, dict) else {},
                served=Served(server.label, name, asks),
            )
        )
    return found


def served(turn: Turn) -> dict[str, Served]:
    """The tools of the turn that we run, by the model's name of them."""
    return {tool.name: tool.served for tool in turn.tools if tool.served is not None}


def answered(messages: Sequence[Message], result: ToolResult) -> tuple[Message, ...]:
    """The messages with a late result where it belongs: behind the call, and what answers beside
    it. A result whose call is not there stands at the end.
    """
    at = len(messages)
    for place, message in enumerate(messages):
        if any(isinstance(b, ToolCall) and b.id == result.call_id for b in message.blocks):
            at = place + 1
            while at < len(messages) and messages[at].role == "tool":
                at += 1
    return (*messages[:at], Message("tool", (result,)), *messages[at:])
