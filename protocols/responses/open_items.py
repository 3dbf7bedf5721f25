"""The output item that is being written: its events before, while and after it grows.

`head` and `tail` are what stands around the text of a delta, `tail` with a place for the sequence
number; both are rendered once, so a delta costs one JSON string.
"""

from __future__ import annotations

from typing import Any, Protocol

from protocols import sse
from protocols.drawn import spelled
from protocols.freeform import InputStream
from protocols.responses.output import Item, Output, part
from turns.blocks import ToolCall
from turns.events import Drawn, ToolCallStarted

Emitted = tuple[str, dict[str, Any]]
TAIL = b',"sequence_number":%d}' + sse.END


class OpenItem(Protocol):
    """One item between its `added` and its `done`."""

    head: bytes
    tail: bytes

    def added(self) -> list[Emitted]:
        """The events that open it."""

    def grow(self, text: str) -> str:
        """Takes the next piece; gives the text of its delta event, "" for none."""

    def rest(self, whole: str) -> str:
        """What of the whole was not fed to `grow` yet."""

    def done(self) -> list[Emitted]:
        """The events that close it."""

    def whole(self, status: str) -> Item:
        """The item as it stands."""


class Open:
    """What all items share: their place, and the pieces they are made of."""

    def __init__(self, output: Output, index: int, item_id: str) -> None:
        self.head = b""
        self.tail = TAIL
        self._output = output
        self._index = index
        self._at: dict[str, Any] = {"item_id": item_id, "output_index": index}
        self._pieces: list[str] = []
        self._length = 0

    def grow(self, text: str) -> str:
        self._pieces.append(text)
        self._length += len(text)
        return text

    def rest(self, whole: str) -> str:
        return whole[self._length :]

    def _text(self) -> str:
        return "".join(self._pieces)

    def _delta(self, kind: str, at: dict[str, Any]) -> bytes:
        data = sse.dumps({"type": kind, **at})[:-1]
        return b"event: " + kind.encode() + b"\ndata: " + data + b',"delta":'


class OpenText(Open):
    """A message with its one part of text."""

    def __init__(self, output: Output, index: int) -> None:
        super().__init__(output, index, output.message_id(index))
        self._at["content_index"] = 0
        self.head = self._delta("response.output_text.delta", self._at)
        self.tail = b',"logprobs":[]' + TAIL
        self.drawn: list[Drawn] = []

    def added(self) -> list[Emitted]:
        item = self._output.message(self._index, None, "in_progress")
        return [
            ("response.output_item.added", {"output_index": self._index, "item": item}),
            ("response.content_part.added", {**self._at, "part": part("output_text", "")}),
        ]

    def done(self) -> list[Emitted]:
        text, logprobs = self._text(), spelled(self.drawn)
        item = self.whole("completed")
        return [
            ("response.output_text.done", {**self._at, "text": text, "logprobs": logprobs}),
            ("response.content_part.done", {**self._at, "part": item["content"][0]}),
            ("response.output_item.done", {"output_index": self._index, "item": item}),
        ]

    def whole(self, status: str) -> Item:
        return self._output.message(self._index, self._text(), status, self.drawn)


class OpenCompaction(Open):
    """A summary: nothing of it is shown before it is whole."""

    def __init__(self, output: Output, index: int) -> None:
        super().__init__(output, index, output.message_id(index))

    def added(self) -> list[Emitted]:
        item = self._output.message(self._index, None, "in_progress")
        return [("response.output_item.added", {"output_index": self._index, "item": item})]

    def grow(self, text: str) -> str:
        super().grow(text)
        return ""

    def done(self) -> list[Emitted]:
        item = self.whole("completed")
        return [("response.output_item.done", {"output_index": self._index, "item": item})]

    def whole(self, status: str) -> Item:
        return self._output.message(self._index, self._text(), status)


class OpenReasoning(Open):
    """A span of reasoning, streamed as a summary or as its own text."""

    def __init__(self, output: Output, index: int) -> None:
        super().__init__(output, index, output.reasoning_id(index))
        spelling = output.reasoning_spelling
        self._at[spelling.index] = 0
        self._spelling = spelling
        self.head = self._delta(f"{spelling.text}.delta", self._at)

    def added(self) -> list[Emitted]:
        spelling = self._spelling
        item = self._output.reasoning(self._index, None, "in_progress")
        empty = part(spelling.part_type, "")
        return [
            ("response.output_item.added", {"output_index": self._index, "item": item}),
            (f"{spelling.part}.added", {**self._at, "part": empty}),
        ]

    def done(self) -> list[Emitted]:
        text, spelling = self._text(), self._spelling
        item = self.whole("completed")
        return [
            (f"{spelling.text}.done", {**self._at, "text": text}),
            (f"{spelling.part}.done", {**self._at, "part": part(spelling.part_type, text)}),
            ("response.output_item.done", {"output_index": self._index, "item": item}),
        ]

    def whole(self, status: str) -> Item:
        return self._output.reasoning(self._index, self._text(), status)


class OpenCall(Open):
    """A call. A custom tool streams its decoded text; tools without argument events stay still."""

    def __init__(self, output: Output, index: int, event: ToolCallStarted) -> None:
        super().__init__(output, index, output.call_item_id(event.name, index))
        self._event = event
        self._kind = output.kind(event.name)
        self._custom = InputStream() if self._kind == "custom_tool_call" else None
        self._shown = 0
        self.head = self._delta(f"{self._family()}.delta", self._at)

    def added(self) -> list[Emitted]:
        item = self._item("", "in_progress")
        return [("response.output_item.added", {"output_index": self._index, "item": item})]

    def grow(self, text: str) -> str:
        super().grow(text)
        if self._custom is not None:
            shown = self._custom.feed(text)
            self._shown += len(shown)
            return shown
        return text if self._kind == "function_call" else ""

    def done(self) -> list[Emitted]:
        item = self.whole("completed")
        added: list[Emitted] = []
        if self._custom is not None:
            if late := item["input"][self._shown :]:
                added.append((f"{self._family()}.delta", {**self._at, "delta": late}))
            added.append((f"{self._family()}.done", {**self._at, "input": item["input"]}))
        elif self._kind == "function_call":
            said = {"name": item["name"], "arguments": item["arguments"]}
            added.append((f"{self._family()}.done", {**self._at, **said}))
        return [
            *added,
            ("response.output_item.done", {"output_index": self._index, "item": item}),
        ]

    def whole(self, status: str) -> Item:
        return self._item(self._text(), status)

    def _item(self, arguments: str, status: str) -> Item:
        event = self._event
        call = ToolCall(event.id, event.name, arguments)
        return self._output.call(self._index, call, event.index, status)

    def _family(self) -> str:
        if self._custom is not None:
            return "response.custom_tool_call_input"
        return "response.function_call_arguments"
