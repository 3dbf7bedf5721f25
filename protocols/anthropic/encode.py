"""A turn's events as a Messages stream, and its fold as a whole message.

Each block has a fresh index and is closed before the next opens. A text block opens with its first
visible character: Anthropic's own API refuses blank text blocks in a history, so none is made.
What a delta looks like up to its text is rendered once per block; a delta costs one JSON string.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec

from protocols import dispatch, errors, ids, sse
from protocols.outcome import Outcome, outcome, outcome_of
from protocols.seals import Seal, seal
from protocols.tool_servers import served
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import (
    Event,
    ReasoningDelta,
    ReasoningEnded,
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
from turns.reply import CutCall, Reply, ReplyBlock, ToolAnswer, ToolListing
from turns.servers import Served
from turns.turn import Turn

STOP_REASONS: dict[Outcome, str] = {
    "end": "end_turn",
    "tool_use": "tool_use",
    "length": "max_tokens",
    "stop_sequence": "stop_sequence",
    "cancelled": "max_tokens",  # no word of theirs says it; this one says: not whole
    "paused": "pause_turn",
}
PING = sse.named(b"ping", b'{"type":"ping"}')
STOP = sse.named(b"message_stop", b'{"type":"message_stop"}')
DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'
CLOSE = b"}}" + sse.END
TEXT = b'{"type":"text_delta","text":'
THINKING = b'{"type":"thinking_delta","thinking":'
ARGUMENTS = b'{"type":"input_json_delta","partial_json":'
SIGNATURE = b'{"type":"signature_delta","signature":'
SYNOPSIS = "tool_synopsis"
NEW_TEXT = b'{"type":"text","text":""}'
NEW_THINKING = b'{"type":"thinking","thinking":"","signature":""}'


class MessagesEncoder:
    """One turn as Messages events."""

    def __init__(self, turn: Turn, *, created: int, model: str, seal: Seal | None = None) -> None:
        self.finished = False
        self._turn = turn
        self._model = model
        self._show = turn.thinking.show
        self._hidden = turn.thinking.hidden
        self._index = -1
        self._open = False
        self._delta = b""
        self._blank: list[str] = []
        self._sent = 0
        self._spans = 0
        self._closing = seal
        self._thought: list[str] = []
        self._called = False
        self._cut = False
        self._served = served(turn)
        self._ours: dict[int, str] = {}
        """Calls that we answer: their number in the turn, and the id that the model gave them."""
        self._last = ""

    def encode(self, events: Sequence[Event]) -> bytes:
        return b"".join([self._event(event) for event in events if not self.finished])

    def keepalive(self) -> bytes:
        return b"" if self.finished else PING

    def whole(self, reply: Reply) -> tuple[int, bytes]:
        if reply.failed is not None:
            status, _, body = errors.anthropic(errors.from_failed(reply.failed), "")
            return status, body
        return 200, sse.dumps(self._message(reply))

    def aside(self, name: str, fields: dict[str, Any]) -> bytes:
        return sse.named(name.encode(), sse.dumps({"type": name, **fields}))

    def called(self, started: ToolCallStarted, arguments: str) -> dict[str, Any]:
        call_id = ids.tool_use(started.id, self._turn.id, started.index)
        return dispatch.function(started.index, call_id, started.name, arguments)

    def _event(self, event: Event) -> bytes:
        match event:
            case TextDelta(text=text):
                return self._text(text)
            case ReasoningDelta(text=text):
                return self._thinking(text)
            case ToolArgumentsDelta(json=json):
                return self._arguments(json)
            case TextEnded():
                return self._text_ended()
            case ReasoningEnded():
                return self._reasoning_ended()
            case ToolCallStarted():
                return self._call(event)
            case ToolCallReady(arguments=arguments):
                return self._ready(arguments)
            case ToolCallCut():
                self._cut = True
                return self._stop()
            case ToolCallAnswered():
                return self._answer(event)
            case ToolsListed() | ToolCallProgressed():
                return self._aside(event)
            case TurnStarted():
                return self._started(event)
            case TurnEnded():
                return self._ended(event)
            case TurnFailed():
                return self._failed(event)
            case _:
                assert_never(event)

    def _text(self, text: str) -> bytes:
        if self._open:
            return self._delta + sse.quote(text) + CLOSE
        self._blank.append(text)
        if not text or text.isspace():
            return b""
        text = "".join(self._blank)
        self._blank.clear()
        return self._start(NEW_TEXT, TEXT) + self._delta + sse.quote(text) + CLOSE

    def _thinking(self, text: str) -> bytes:
        if self._hidden:
            return b""
        start = b"" if self._open else self._start(NEW_THINKING, THINKING)
        self._thought.append(text)
        if not self._show:
            return start
        return start + self._delta + sse.quote(text) + CLOSE

    def _arguments(self, json: str) -> bytes:
        self._sent += len(json)
        return self._delta + sse.quote(json) + CLOSE

    def _text_ended(self) -> bytes:
        self._blank.clear()
        return self._stop() if self._open else b""

    def _reasoning_ended(self) -> bytes:
        if self._hidden:
            return b""
        signature = sse.quote(self._sealed("".join(self._thought), self._spans))
        self._thought.clear()
        self._spans += 1
        return DELTA % self._index + SIGNATURE + signature + CLOSE + self._stop()

    def _sealed(self, text: str, nth: int) -> str:
        return seal(self._turn.id, nth) if self._closing is None else self._closing(text)

    def _call(self, event: ToolCallStarted) -> bytes:
        self._sent = 0
        self._last = event.name
        if (tool := self._served.get(event.name)) is not None:
            self._ours[event.index] = event.id
            return self._start(sse.dumps(use(self._use(event.index), tool, {})), ARGUMENTS)
        call_id = ids.tool_use(event.id, self._turn.id, event.index)
        block = b'{"type":"tool_use","id":%b,"name":%b,"input":{}}'
        return self._start(block % (sse.quote(call_id), sse.quote(event.name)), ARGUMENTS)

    def _ready(self, arguments: str) -> bytes:
        self._called = self._called or self._last not in self._served
        rest = arguments[self._sent :]
        return (self._arguments(rest) if rest else b"") + self._stop()

    def _use(self, index: int) -> str:
        """The id of the call number `index`, which is answered inside the turn."""
        return ids.mcp_tool_use(self._ours.get(index, ""), self._turn.id, index)

    def _answer(self, event: ToolCallAnswered) -> bytes:
        block = result(self._use(event.index), event.text, is_error=event.is_error)
        return self._start(sse.dumps(block), TEXT) + self._stop()

    def _aside(self, event: ToolsListed | ToolCallProgressed) -> bytes:
        """What is no part of the message: told to those who asked, or to nobody."""
        if isinstance(event, ToolsListed):
            return b""
        said = {"tool_use_id": self._use(event.index), "synopsis": event.synopsis}
        return dispatch.interim(self, self._turn, SYNOPSIS, said)

    def _start(self, block: bytes, delta: bytes) -> bytes:
        self._index += 1
        self._open = True
        self._delta = DELTA % self._index + delta
        data = b'{"type":"content_block_start","index":%d,"content_block":%b}' % (
            self._index,
            block,
        )
        return sse.named(b"content_block_start", data)

    def _stop(self) -> bytes:
        self._open = False
        data = b'{"type":"content_block_stop","index":%d}' % self._index
        return sse.named(b"content_block_stop", data)

    def _started(self, event: TurnStarted) -> bytes:
        usage = Usage(event.input_tokens, event.cached_tokens)
        start = {"type": "message_start", "message": self._shell([], None, None, usage)}
        return sse.named(b"message_start", sse.dumps(start))

    def _ended(self, event: TurnEnded) -> bytes:
        self.finished = True
        how = outcome(event.stop, called=self._called, cut=self._cut)
        delta = {
            "type": "message_delta",
            "delta": {"stop_reason": STOP_REASONS[how], "stop_sequence": _matched(how, event)},
            "usage": usage_of(event.usage),
        }
        return sse.named(b"message_delta", sse.dumps(delta)) + STOP

    def _failed(self, event: TurnFailed) -> bytes:
        self.finished = True
        error = {"type": errors.TABLE[event.kind].anthropic_type, "message": event.message}
        return sse.named(b"error", sse.dumps({"type": "error", "error": error}))

    def _message(self, reply: Reply) -> dict[str, Any]:
        how = outcome_of(reply.stop, reply.blocks, self._served)
        content: list[dict[str, Any]] = []
        seen = {Reasoning: 0, ToolCall: 0, Text: 0, ToolAnswer: 0, ToolListing: 0}
        for block in reply.blocks:
            kind = ToolCall if isinstance(block, CutCall) else type(block)
            if (part := self._block(block, seen[kind])) is not None:
                content.append(part)
            seen[kind] += 1
        return self._shell(content, STOP_REASONS[how], _matched(how, reply), reply.usage)

    def _block(self, block: ReplyBlock, nth: int) -> dict[str, Any] | None:
        """The content block of the `nth` reply block of its kind, None for what is not shown."""
        match block:
            case Text(text=text):
                return {"type": "text", "text": text} if text.strip() else None
            case Reasoning() if self._hidden:
                return None
            case Reasoning(text=text):
                shown = text if self._show else ""
                signature = self._sealed(text, nth)
                return {"type": "thinking", "thinking": shown, "signature": signature}
            case ToolCall(name=name) if (tool := self._served.get(name)) is not None:
                self._ours[nth] = block.id
                return use(self._use(nth), tool, msgspec.Raw(block.arguments.encode()))
            case ToolAnswer(index=index, text=text, is_error=is_error):
                return result(self._use(index), text, is_error=is_error)
            case ToolListing():
                return None
            case ToolCall():
                return {
                    "type": "tool_use",
                    "id": ids.tool_use(block.id, self._turn.id, nth),
                    "name": block.name,
                    "input": msgspec.Raw(block.arguments.encode()),
                }
            case CutCall():
                return None  # `input` must be an object, and half of one must not be invented
            case _:
                assert_never(block)

    def _shell(
        self,
        content: list[dict[str, Any]],
        stop_reason: str | None,
        stop_sequence: str | None,
        usage: Usage,
    ) -> dict[str, Any]:
        return {
            "id": ids.message(self._turn.id),
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": stop_sequence,
            "usage": usage_of(usage),
        }


def use(call_id: str, tool: Served, arguments: Any) -> dict[str, Any]:
    """A call that is answered inside the turn."""
    return {
        "type": "mcp_tool_use",
        "id": call_id,
        "name": tool.name,
        "server_name": tool.server,
        "input": arguments,
    }


def result(call_id: str, text: str, *, is_error: bool) -> dict[str, Any]:
    """What a call that was answered inside the turn gave back."""
    content = [{"type": "text", "text": text, "citations": None}] if text else []
    return {
        "type": "mcp_tool_result",
        "tool_use_id": call_id,
        "is_error": is_error,
        "content": content,
    }


def usage_of(usage: Usage) -> dict[str, int]:
    """Anthropic's `input_tokens` leaves out what the cache held; a client adds the three up."""
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }


def _matched(how: Outcome, ended: TurnEnded | Reply) -> str | None:
    return ended.stop_sequence if how == "stop_sequence" else None
