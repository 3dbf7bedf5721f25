"""The items of tools that are run for the client: `mcp_list_tools`, `mcp_call`, and the request for
consent.

A call's item stays open until its answer came, so several may be open at once. The id of a call
that the model made beside another one ends in `p`: an input that repeats both can then put them
back into the one message that they were.
"""

from __future__ import annotations

from typing import Any

import msgspec

from protocols import ids
from protocols.responses.open_items import Emitted, Open
from protocols.responses.output import Item, Output
from protocols.tool_servers import BESIDE
from turns.blocks import ToolCall
from turns.events import ToolCallStarted
from turns.servers import Served
from turns.turn import Turn

ADDED = "response.output_item.added"
DONE = "response.output_item.done"


class Answer(msgspec.Struct, frozen=True):
    """What a call gave back."""

    text: str
    is_error: bool


class ServedItems:
    """Makes the items of one turn's served tools."""

    def __init__(self, turn: Turn) -> None:
        self._id = turn.id
        self._approved = frozenset(turn.approved)

    def asks(self, tool: Served, call_id: str) -> bool:
        """Whether the client must consent before the call is made."""
        return tool.ask and call_id not in self._approved

    def call_id(self, index: int, *, beside: bool) -> str:
        return ids.item("mcp", self._id, index) + (BESIDE if beside else "")

    def call(
        self, item_id: str, tool: Served, call: ToolCall, status: str, answer: Answer | None
    ) -> Item:
        """A call, with its answer where there is one."""
        failed = answer is not None and answer.is_error
        error = {"type": "mcp_tool_execution_error", "content": _texts(answer)} if failed else None
        return {
            "type": "mcp_call",
            "id": item_id,
            "status": "failed" if failed else status,
            "approval_request_id": call.id if call.id in self._approved else None,
            "server_label": tool.server,
            "name": tool.name,
            "arguments": call.arguments,
            "output": None if answer is None or failed else answer.text,
            "error": error,
        }

    def consent(self, index: int, tool: Served, call: ToolCall) -> Item:
        """The question whether a call may be made; its id is the call's from now on."""
        return {
            "type": "mcp_approval_request",
            "id": ids.item("mcpr", self._id, index),
            "server_label": tool.server,
            "name": tool.name,
            "arguments": call.arguments,
        }

    def listing(self, index: int, server: str, tools: tuple[dict[str, Any], ...]) -> Item:
        return {
            "type": "mcp_list_tools",
            "id": ids.item("mcpl", self._id, index),
            "server_label": server,
            "tools": list(tools),
            "error": None,
        }


class OpenServed(Open):
    """A call that we make: its arguments stream, and its item is done when it was answered."""

    def __init__(
        self,
        output: Output,
        index: int,
        event: ToolCallStarted,
        items: ServedItems,
        tool: Served,
        *,
        beside: bool,
    ) -> None:
        super().__init__(output, index, items.call_id(index, beside=beside))
        self.answer: Answer | None = None
        self._event = event
        self._items = items
        self._tool = tool
        self.head = self._delta("response.mcp_call_arguments.delta", self._at)

    def added(self) -> list[Emitted]:
        item = self._item("", "in_progress")
        return [
            (ADDED, {"output_index": self._index, "item": item}),
            ("response.mcp_call.in_progress", self._at),
        ]

    def done(self) -> list[Emitted]:
        said = {"arguments": self._text()}
        return [("response.mcp_call_arguments.done", {**self._at, **said})]

    def answered(self) -> list[Emitted]:
        """The events of its end, once `answer` is there."""
        item = self.whole("completed")
        return [
            (f"response.mcp_call.{item['status']}", self._at),
            (DONE, {"output_index": self._index, "item": item}),
        ]

    def progressed(self, synopsis: str) -> Emitted:
        return "response.mcp_call.synopsis", {**self._at, "synopsis": synopsis}

    def whole(self, status: str) -> Item:
        if self.answer is None and status == "completed":
            status = "calling"
        return self._item(self._text(), status)

    def _item(self, arguments: str, status: str) -> Item:
        call = ToolCall(self._event.id, self._event.name, arguments)
        return self._items.call(str(self._at["item_id"]), self._tool, call, status, self.answer)


class OpenConsent(Open):
    """A call that the client must consent to: shown when its arguments are whole."""

    def __init__(
        self, output: Output, index: int, event: ToolCallStarted, items: ServedItems, tool: Served
    ) -> None:
        super().__init__(output, index, "")
        self._event = event
        self._items = items
        self._tool = tool

    def added(self) -> list[Emitted]:
        return [(ADDED, {"output_index": self._index, "item": self.whole("in_progress")})]

    def grow(self, text: str) -> str:
        super().grow(text)
        return ""

    def done(self) -> list[Emitted]:
        return [(DONE, {"output_index": self._index, "item": self.whole("completed")})]

    def whole(self, status: str) -> Item:
        call = ToolCall(self._event.id, self._event.name, self._text())
        return self._items.consent(self._index, self._tool, call)


def listed(item: Item, index: int) -> list[Emitted]:
    """The events of a list of tools, which comes all at once."""
    at = {"item_id": item["id"], "output_index": index}
    return [
        (ADDED, {"output_index": index, "item": item | {"tools": []}}),
        ("response.mcp_list_tools.in_progress", at),
        ("response.mcp_list_tools.completed", at),
        (DONE, {"output_index": index, "item": item}),
    ]


def _texts(answer: Answer | None) -> list[dict[str, str]]:
    return [] if answer is None else [{"type": "text", "text": answer.text}]
