"""From what the machine read to events, in the order law of `turns/events.py`.

Blocks open at their first visible character, never overlap, and give at most one delta per feed.
Whitespace at the edge of a block is held until it is known to be inside: next to a marker it is
glue and dropped, at the end of the output it is the model's own and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from parsers.json_text import is_object
from parsers.stop import StopStrings
from turns.events import (
    Cut,
    Event,
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    TextEnded,
    ToolArgumentsDelta,
    ToolCallCut,
    ToolCallReady,
    ToolCallStarted,
)

Mint = Callable[[int, str], str]
_WHITE = " \t\r\n\f\v"


class Block(IntEnum):
    """Which block is open. A text or reasoning block may be open and still blank."""

    NONE = 0
    TEXT = 1
    REASONING = 2
    CALL = 3


class Emitter:
    """One per turn. `index` counts calls; `ready` those that are complete."""

    def __init__(
        self, *, mint: Mint, stop: tuple[str, ...] = (), edge: bool = False, index: int = 0
    ) -> None:
        self._mint = mint
        self._stop = StopStrings(stop) if any(stop) else None
        self._events: list[Event] = []
        self._parts: list[str] = []  # of the open block, since the last take()
        self._whole: list[str] = []  # of the open call's arguments
        self._space: list[str] = []
        self._edge = edge  # whether the open block begins next to a marker
        self.block = Block.NONE
        self.visible = False
        self.index = self._from = index
        self.ready = 0

    @property
    def stopped(self) -> str | None:
        """The stop string that came, if one came."""
        return self._stop.matched if self._stop else None

    @property
    def made(self) -> int:
        """How many calls there were, complete or not."""
        return self.index - self._from

    @property
    def blank(self) -> bool:
        """Whether the text of this block is still blank."""
        return not self.visible and not (self._stop and self._stop.holds)

    def sibling(self) -> Emitter:
        """An emitter whose calls would come next in this turn."""
        return Emitter(mint=self._mint, index=self.index)

    def take(self) -> list[Event]:
        """The events since the last take."""
        if self._parts:
            self._flush()
        events = self._events
        if events:
            self._events = []
        return events

    def text(self, text: str) -> None:
        """Visible text."""
        if (
            self.visible
            and self.block is Block.TEXT
            and self._stop is None
            and not self._space
            and text[-1] not in _WHITE
        ):
            self._parts.append(text)  # the common case: inside a block, nothing to hold
            return
        if self._stop is not None:
            text = self._watched(text, self._stop)
        self._span(Block.TEXT, text)

    def reasoning(self, text: str) -> None:
        """Text of the model's reasoning."""
        if (
            self.visible
            and self.block is Block.REASONING
            and not self._space
            and text[-1] not in _WHITE
        ):
            self._parts.append(text)
            return
        self._span(Block.REASONING, text)

    def mark(self) -> None:
        """A marker stands here: the open block of text or reasoning ends, its edge trimmed."""
        if self._stop is not None and self.block is Block.TEXT:
            self._span(Block.TEXT, self._stop.flush())
        self._space.clear()
        self._end_span()
        self._edge = True

    def end(self) -> None:
        """The output ends here: the open block of text or reasoning ends as it is."""
        if self._stop is not None and self.block is Block.TEXT:
            self._span(Block.TEXT, self._stop.flush())
        if self.visible:
            self._parts.extend(self._space)
        self._space.clear()
        self._end_span()

    def call(self, name: str, id_: str = "") -> None:
        self.mark()
        self.block = Block.CALL
        self._events.append(ToolCallStarted(self.index, id_ or self._mint(self.index, name), name))

    def arguments(self, json: str) -> None:
        if json:
            self._parts.append(json)
            self._whole.append(json)

    def complete(self) -> None:
        """The open call has all its arguments: ready if they are a JSON object, cut if not."""
        whole = "".join(self._whole)
        if not whole:
            whole = "{}"
            self._parts.append(whole)
        if not is_object(whole):
            self.cut("malformed")
            return
        self._flush()
        self._events.append(ToolCallReady(self.index, whole))
        self.ready += 1
        self._close_call()

    def cut(self, reason: Cut) -> None:
        """The open call will never be complete."""
        self._flush()
        self._events.append(ToolCallCut(self.index, reason))
        self._close_call()

    def replay(self, events: list[Event], calls: int) -> None:
        """Calls that were read as a draft and turned out to be real."""
        self.mark()
        self._events.extend(events)
        self.index += calls
        self.ready += calls

    def _close_call(self) -> None:
        self._whole.clear()
        self.index += 1
        self.block = Block.NONE
        self._edge = True

    def _watched(self, text: str, stop: StopStrings) -> str:
        """Text that the stop strings let pass. Blanks before the first character do not count."""
        if stop.matched is not None:
            return ""
        if self.blank:
            body = text.lstrip(_WHITE)
            self._span(Block.TEXT, text[: len(text) - len(body)])
            text = body
        return stop.feed(text) if text else ""

    def _span(self, block: Block, text: str) -> None:
        if self.block is not block:
            self.mark_if_open()
            self.block = block
        if not text:
            return
        if not self.visible:
            body = text.lstrip(_WHITE)
            if not body:
                self._space.append(text)
                return
            if self._edge:
                self._space.clear()
                text = body
            self.visible = True
        if text[-1] in _WHITE:
            body = text.rstrip(_WHITE)
            if body:
                self._parts.extend(self._space)
                self._space.clear()
                self._parts.append(body)
            self._space.append(text[len(body) :])
            return
        if self._space:
            self._parts.extend(self._space)
            self._space.clear()
        self._parts.append(text)

    def mark_if_open(self) -> None:
        if self.block is not Block.NONE:
            self.mark()

    def _end_span(self) -> None:
        if self.block is Block.CALL:
            self.cut("malformed")
            return
        if self.visible:
            self._flush()
            self._events.append(TextEnded() if self.block is Block.TEXT else ReasoningEnded())
        self.visible = False
        self.block = Block.NONE

    def _flush(self) -> None:
        """The gathered pieces as one delta of the open block."""
        parts = self._parts
        if not parts:
            return
        text = parts[0] if len(parts) == 1 else "".join(parts)
        parts.clear()
        if self.block is Block.TEXT:
            self._events.append(TextDelta(text))
        elif self.block is Block.REASONING:
            self._events.append(ReasoningDelta(text))
        else:
            self._events.append(ToolArgumentsDelta(self.index, text))
