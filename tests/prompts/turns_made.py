"""Short ways to write turns in tests."""

from __future__ import annotations

from typing import Any

from turns.blocks import Block, Message, Role, Text, ToolCall, ToolResult
from turns.turn import Tool, Turn

FORECAST = Tool(
    "forecast",
    "Outlook",
    {
        "type": "object",
        "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["place"],
    },
)


def turn(*messages: Message, **fields: Any) -> Turn:
    return Turn(id="t", api=fields.pop("api", "messages"), model="m", messages=messages, **fields)


def message(role: Role, *blocks: Block | str) -> Message:
    return Message(
        role, tuple(Text(block) if isinstance(block, str) else block for block in blocks)
    )


def system(*blocks: Block | str) -> Message:
    return message("system", *blocks)


def user(*blocks: Block | str) -> Message:
    return message("user", *blocks)


def assistant(*blocks: Block | str) -> Message:
    return message("assistant", *blocks)


def call(
    arguments: str = '{"place": "Bergen"}',
    name: str = "forecast",
    id: str = "c1",  # noqa: A002 -- the field's name
) -> ToolCall:
    return ToolCall(id, name, arguments)


def result(text: str = "rain", id: str = "c1", **fields: Any) -> ToolResult:  # noqa: A002
    return ToolResult(id, (Text(text),) if text else (), **fields)
