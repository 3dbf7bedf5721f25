"""Output items, as they stand in `output_item.done` and in the whole response: one maker for both.

A call is spelled as the tool was declared: a namespaced function gets its `namespace` back, a
custom tool its free text, a client's own tool its `action` or `operation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from protocols import dispatch, freeform, ids
from protocols.drawn import spelled
from protocols.responses import compaction
from protocols.seals import Seal, seal
from turns.blocks import ToolCall
from turns.events import Drawn
from turns.turn import Turn

Item = dict[str, Any]
PREFIXES = {
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "tool_search_call": "tsc",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
}


class Spelling(msgspec.Struct, frozen=True):
    """How reasoning is streamed: the events of its part and text, and the part's own type."""

    part: str
    text: str
    index: str
    part_type: str


SUMMARY = Spelling(
    "response.reasoning_summary_part",
    "response.reasoning_summary_text",
    "summary_index",
    "summary_text",
)
RAW = Spelling(
    "response.content_part", "response.reasoning_text", "content_index", "reasoning_text"
)


class Output:
    """Makes the items of one turn. `index` is the item's place in the output."""

    def __init__(self, turn: Turn, closing: Seal | None = None) -> None:
        self._id = turn.id
        self._closing = closing
        self._seals: dict[int, str] = {}
        self._shapes: dict[str, dict[str, str]] = turn.echo.get("shapes") or {}
        self.compact = bool(turn.echo.get("compact"))
        self._encrypted = bool(turn.echo.get("encrypted"))
        self._summary = bool(turn.echo.get("summary"))
        self.reasoning_spelling = SUMMARY if self._summary else RAW

    def kind(self, name: str) -> str:
        """The type of item that a call to the tool `name` becomes."""
        shape = self._shapes.get(name)
        return shape["item"] if shape else "function_call"

    def message_id(self, index: int) -> str:
        return ids.item("cmp" if self.compact else "msg", self._id, index)

    def reasoning_id(self, index: int) -> str:
        return ids.item("rs", self._id, index)

    def call_item_id(self, name: str, index: int) -> str:
        return ids.item(PREFIXES[self.kind(name)], self._id, index)

    def message(
        self, index: int, text: str | None, status: str, drawn: Sequence[Drawn] = ()
    ) -> Item:
        """A message, or a summary; `text` None while nothing of it was written."""
        if self.compact:
            sealed = compaction.sealed(text or "")
            return {
                "type": "compaction",
                "id": self.message_id(index),
                "encrypted_content": sealed,
            }
        content = [] if text is None else [part("output_text", text)]
        if drawn:
            content[0]["logprobs"] = spelled(drawn)
        return {
            "type": "message",
            "id": self.message_id(index),
            "status": status,
            "role": "assistant",
            "content": content,
        }

    def reasoning(self, index: int, text: str | None, status: str) -> Item:
        """A reasoning item; its text as a summary or as itself, as the request asks."""
        item: Item = {
            "type": "reasoning",
            "id": self.reasoning_id(index),
            "status": status,
            "summary": [],
        }
        if self._encrypted and text is not None:
            item["encrypted_content"] = self._sealed(index, text)
        if not self._summary:
            item["content"] = []
        if text is not None:
            kind = "summary_text" if self._summary else "reasoning_text"
            item["summary" if self._summary else "content"] = [{"type": kind, "text": text}]
        return item

    def _sealed(self, index: int, text: str) -> str:
        """Each span is sealed once: its item stands in the stream and in the whole response."""
        if self._closing is None:
            return seal(self._id, index)
        if index not in self._seals:
            self._seals[index] = self._closing(text)
        return self._seals[index]

    def call(self, index: int, call: ToolCall, nth: int, status: str) -> Item:
        """A call of any kind. `nth` counts the calls of the turn."""
        shape = self._shapes.get(call.name) or {}
        item: Item = {
            "type": self.kind(call.name),
            "id": self.call_item_id(call.name, index),
            "status": status,
            "call_id": ids.call(call.id, self._id, nth),
        }
        return item | self._said(item["type"], call, shape, cut=status != "completed")

    def dispatched(self, call: ToolCall, nth: int) -> Item:
        """A complete call for the dispatch side channel, under the name the client knows."""
        shape = self._shapes.get(call.name) or {}
        name = shape.get("name") or call.name
        call_id = ids.call(call.id, self._id, nth)
        made = dispatch.function(nth, call_id, name, call.arguments)
        if self.kind(call.name) == "custom_tool_call":
            del made["function"]
            custom = {"name": name, "input": freeform.input_of(call.arguments)}
            made |= {"type": "custom", "custom": custom}
        if namespace := shape.get("namespace"):
            made["namespace"] = namespace
        return made

    def _said(self, kind: str, call: ToolCall, shape: dict[str, str], *, cut: bool) -> Item:
        named: Item = {"name": shape.get("name") or call.name}
        if namespace := shape.get("namespace"):
            named["namespace"] = namespace
        match kind:
            case "custom_tool_call":
                read = freeform.input_so_far if cut else freeform.input_of
                return named | {"input": read(call.arguments)}
            case "tool_search_call":
                return {"execution": "client", "arguments": _object(call.arguments)}
            case "local_shell_call":
                return {"action": {"type": "exec", "env": {}, **_object(call.arguments)}}
            case "shell_call":
                return {"action": _object(call.arguments)}
            case "apply_patch_call":
                return {"operation": _object(call.arguments)}
            case _:
                return named | {"arguments": call.arguments}


def part(kind: str, text: str) -> Item:
    """A content part, with the lists that the schema wants beside an answer's text."""
    if kind == "output_text":
        return {"type": kind, "text": text, "annotations": [], "logprobs": []}
    return {"type": kind, "text": text}


def _object(arguments: str) -> Item:
    """Arguments as an object; what is not one yet (a cut call) is empty."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
