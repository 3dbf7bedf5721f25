"""How calls are spelled in Chat: `tool_calls`, or the single `function_call` of the old API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protocols import ids, sse
from turns.blocks import ToolCall
from turns.events import ToolCallStarted


class ToolCalls:
    """Calls as `tool_calls`, by index."""

    reason = "tool_calls"
    close = b"}}]}"

    def __init__(self, turn_id: str) -> None:
        self._turn_id = turn_id

    def first(self, event: ToolCallStarted) -> bytes:
        """The delta that opens a call."""
        call_id = ids.call(event.id, self._turn_id, event.index)
        opened = (
            b'{"tool_calls":[{"index":%d,"id":%b,"type":"function",'
            b'"function":{"name":%b,"arguments":""}}]}'
        )
        return opened % (event.index, sse.quote(call_id), sse.quote(event.name))

    def piece(self, index: int) -> bytes:
        """What stands before a piece of the arguments; `close` stands after it."""
        return b'{"tool_calls":[{"index":%d,"function":{"arguments":' % index

    def whole(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        """The fields of a message that made these calls."""
        return {
            "tool_calls": [
                {
                    "id": ids.call(call.id, self._turn_id, index),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for index, call in enumerate(calls)
            ]
        }


class FunctionCall(ToolCalls):
    """The old API: one call, without an id."""

    reason = "function_call"
    close = b"}}"

    def first(self, event: ToolCallStarted) -> bytes:
        return b'{"function_call":{"name":%b,"arguments":""}}' % sse.quote(event.name)

    def piece(self, index: int) -> bytes:
        return b'{"function_call":{"arguments":'

    def whole(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        return {"function_call": {"name": calls[0].name, "arguments": calls[0].arguments}}
