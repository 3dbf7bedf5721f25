"""The reply: the fold of a turn's events. Every non-streaming answer is this fold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from turns.blocks import Reasoning, Text, ToolCall
from turns.events import (
    Cut,
    Drawn,
    Event,
    ReasoningDelta,
    ReasoningEnded,
    Stop,
    TextDelta,
    TextEnded,
    ToolArgumentsDelta,
    ToolCallAnswered,
    ToolCallCut,
    ToolCallProgressed,
    ToolCallReady,
    ToolCallStarted,
    ToolsListed,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    Usage,
)


class CutCall(Struct, frozen=True, tag="cut_call"):
    """A call that never became complete: its arguments as far as they came."""

    call: ToolCall
    reason: Cut


class ToolAnswer(Struct, frozen=True, tag="tool_answer"):
    """What the call number `index` gave back, where the server ran it."""

    index: int
    text: str
    is_error: bool = False


class ToolListing(Struct, frozen=True, tag="tool_listing"):
    """The tools of a server that the server side asked for them."""

    server: str
    tools: tuple[dict[str, Any], ...]


ReplyBlock = Text | Reasoning | ToolCall | CutCall | ToolAnswer | ToolListing


class Reply(Struct, frozen=True):
    """What the model answered, blocks in order. `failed` is set when the turn died. `drawn` has the
    tokens of each of the texts, where they were asked for.
    """

    blocks: tuple[ReplyBlock, ...]
    stop: Stop | None
    usage: Usage
    stop_sequence: str | None = None
    failed: TurnFailed | None = None
    drawn: tuple[tuple[Drawn, ...], ...] = ()


class Fold:
    """Takes events one by one and gives the reply as it stands. O(1) amortised per event."""

    def __init__(self) -> None:
        self._blocks: list[ReplyBlock] = []
        self._pieces: list[str] = []
        self._call: ToolCallStarted | None = None
        self._end: TurnEnded | None = None
        self._failed: TurnFailed | None = None
        self._usage = Usage()
        self._tokens: list[Drawn] = []
        self._drawn: list[tuple[Drawn, ...]] = []

    def add(self, event: Event) -> None:
        match event:
            case TextDelta(text=text, drawn=drawn):
                self._pieces.append(text)
                self._tokens += drawn
            case ReasoningDelta(text=text) | ToolArgumentsDelta(json=text):
                self._pieces.append(text)
            case ReasoningEnded():
                self._blocks.append(Reasoning(self._take()))
            case TextEnded():
                self._blocks.append(Text(self._take()))
                self._drawn.append(tuple(self._tokens))
                self._tokens.clear()
            case ToolCallStarted():
                self._call = event
            case ToolCallReady(arguments=arguments):
                self._pieces.clear()
                self._blocks.append(self._called(arguments))
            case ToolCallCut(reason=reason):
                self._blocks.append(CutCall(self._called(self._take()), reason))
            case ToolsListed(server=server, tools=tools):
                self._blocks.append(ToolListing(server, tools))
            case ToolCallAnswered(index=index, text=text, is_error=is_error):
                self._blocks.append(ToolAnswer(index, text, is_error))
            case ToolCallProgressed():
                pass
            case TurnStarted(input_tokens=tokens, cached_tokens=cached):
                self._usage = Usage(tokens, cached)
            case TurnEnded(usage=usage):
                self._end, self._usage = event, usage
            case TurnFailed():
                self._failed = event

    def reply(self) -> Reply:
        end = self._end
        return Reply(
            blocks=tuple(self._blocks),
            stop=end.stop if end else None,
            usage=self._usage,
            stop_sequence=end.stop_sequence if end else None,
            failed=self._failed,
            drawn=tuple(self._drawn) if any(self._drawn) else (),
        )

    def _take(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        return text

    def _called(self, arguments: str) -> ToolCall:
        call = self._call
        if call is None:
            msg = "a tool call ended that never started"
            raise ValueError(msg)
        self._call = None
        return ToolCall(call.id, call.name, arguments)


def fold(events: Iterable[Event]) -> Reply:
    """The whole reply of a finished stream of events."""
    folder = Fold()
    for event in events:
        folder.add(event)
    return folder.reply()
