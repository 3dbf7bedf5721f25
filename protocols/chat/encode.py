"""A turn's events as Chat Completions chunks, and its fold as a whole completion.

Chat has no blocks: texts are joined as paragraphs, and so are spans of reasoning, which go out
under both names that clients read (`reasoning_content` and `reasoning`). A tool's first delta alone
has its id, type and name; no chunk holds two deltas of one index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from protocols import dispatch, errors, ids, sse
from protocols.chat.calls import FunctionCall, ToolCalls
from protocols.chat.choice import choice_of
from protocols.chat.details import Details
from protocols.drawn import spelled
from protocols.outcome import Outcome, outcome, outcome_of
from protocols.seals import Seal
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import (
    Drawn,
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
from turns.reply import CutCall, Reply, ToolAnswer, ToolListing
from turns.turn import Turn

REASONS: dict[Outcome, str] = {
    "end": "stop",
    "tool_use": "tool_calls",
    "length": "length",
    "stop_sequence": "stop",
    "cancelled": "length",  # the reply is not whole
    "paused": "stop",
}
GAP = "\n\n"
"""Between two blocks of one kind, whose own edge whitespace was the template's."""
CLOSE = b',"finish_reason":null}]}' + sse.END


class ChatEncoder:
    """One turn as chat completion chunks."""

    def __init__(self, turn: Turn, *, created: int, model: str, seal: Seal | None = None) -> None:
        self.finished = False
        self._turn = turn
        self._choice = choice_of(turn)
        self._created = created
        self._model = model
        self._show = turn.thinking.show
        self._include_usage = bool(turn.echo.get("include_usage"))
        self._calls = (FunctionCall if turn.echo.get("legacy") else ToolCalls)(turn.id)
        self._head = b"data: " + sse.dumps(self._shell("chat.completion.chunk"))[:-1]
        self._open = self._head + b',"choices":[{"index":%d,"delta":' % self._choice.index
        self._text = self._open + b'{"content":'
        self._reasoning = self._open + b'{"reasoning_content":'
        self._arguments = b""
        self._sent = 0
        self._called = False
        self._cut = False
        self._details = Details(turn, seal) if turn.echo.get("details") and self._show else None
        self._text_gap = ""
        self._thought_gap = ""

    def encode(self, events: Sequence[Event]) -> bytes:
        return b"".join([self._event(event) for event in events if not self.finished])

    def keepalive(self) -> bytes:
        return b"" if self.finished else self._open + b"{}" + CLOSE

    def whole(self, reply: Reply) -> tuple[int, bytes]:
        if reply.failed is not None:
            status, _, body = errors.openai(errors.from_failed(reply.failed), "")
            return status, body
        return 200, self.completion([self.choice(reply)], reply.usage)

    def choice(self, reply: Reply) -> dict[str, Any]:
        """The reply as one of the choices of a completion."""
        how = outcome_of(reply.stop, reply.blocks)
        return {
            "index": self._choice.index,
            "message": self._message(reply),
            "logprobs": logprobs([one for text in reply.drawn for one in text])
            if reply.drawn
            else None,
            "finish_reason": self._reason(how),
        }

    def completion(self, choices: list[dict[str, Any]], usage: Usage) -> bytes:
        """The body of a completion that is not streamed."""
        shell = self._shell("chat.completion")
        return sse.dumps(shell | {"choices": choices, "usage": usage_of(usage)})

    def aside(self, name: str, fields: dict[str, Any]) -> bytes:
        # `choices: []` lets an SDK that reads every line as a chunk pass over this one.
        said = self._head + b',"choices":[],' + sse.dumps(fields)[1:]
        return b"event: " + name.encode() + b"\n" + said + sse.END

    def called(self, started: ToolCallStarted, arguments: str) -> dict[str, Any]:
        call_id = ids.call(started.id, self._turn.id, started.index)
        return dispatch.function(started.index, call_id, started.name, arguments)

    def _event(self, event: Event) -> bytes:
        match event:
            case TextDelta(text=text, drawn=drawn):
                return self._said(text, drawn) if text else b""
            case ReasoningDelta(text=text):
                return self._thinking(text)
            case ToolArgumentsDelta(json=json):
                return self._piece(json)
            case TextEnded():
                self._text_gap = GAP
                return b""
            case ReasoningEnded():
                return self._thought()
            case ToolCallStarted():
                return self._call(event)
            case ToolCallReady(arguments=arguments):
                self._called = True
                rest = arguments[self._sent :]
                return self._piece(rest) if rest else b""
            case ToolCallCut():
                self._cut = True
                return b""
            case TurnStarted():
                return self._open + b'{"role":"assistant","content":null}' + CLOSE
            case ToolsListed() | ToolCallProgressed() | ToolCallAnswered():
                return b""  # no request of this API names servers of tools
            case TurnEnded():
                return self._ended(event)
            case TurnFailed():
                return self._failed(event)
            case _:
                assert_never(event)

    def _said(self, text: str, drawn: tuple[Drawn, ...]) -> bytes:
        if self._text_gap:
            text, self._text_gap = self._text_gap + text, ""
        said = self._text + sse.quote(text) + b"}"
        if not drawn:
            return said + CLOSE
        return said + b',"logprobs":' + sse.dumps(logprobs(drawn)) + CLOSE

    def _thinking(self, text: str) -> bytes:
        if not self._show or not text:
            return b""
        if self._details is not None:
            self._details.add(text)
        if self._thought_gap:
            text, self._thought_gap = self._thought_gap + text, ""
        quoted = sse.quote(text)
        return self._reasoning + quoted + b',"reasoning":' + quoted + b"}" + CLOSE

    def _thought(self) -> bytes:
        self._thought_gap = GAP
        if self._details is None:
            return b""
        return self._open + sse.dumps({"reasoning_details": [self._details.ended()]}) + CLOSE

    def _piece(self, json: str) -> bytes:
        self._sent += len(json)
        return self._arguments + sse.quote(json) + self._calls.close + CLOSE

    def _call(self, event: ToolCallStarted) -> bytes:
        self._sent = 0
        self._arguments = self._open + self._calls.piece(event.index)
        return self._open + self._calls.first(event) + CLOSE

    def _ended(self, event: TurnEnded) -> bytes:
        self.finished = True
        how = outcome(event.stop, called=self._called, cut=self._cut)
        last = self._open + b'{},"finish_reason":"%b"}]}' % self._reason(how).encode() + sse.END
        return last if self._choice.completion else last + self.done(event.usage)

    def done(self, usage: Usage) -> bytes:
        """What stands behind the last choice of a stream."""
        if not self._include_usage:
            return sse.DONE
        told = b',"choices":[],"usage":' + sse.dumps(usage_of(usage)) + b"}" + sse.END
        return self._head + told + sse.DONE

    def _failed(self, event: TurnFailed) -> bytes:
        self.finished = True
        kind = errors.TABLE[event.kind]
        error = {
            "message": event.message,
            "type": kind.openai_type,
            "param": None,
            "code": kind.code,
        }
        return sse.data(sse.dumps({"error": error})) + sse.DONE

    def _reason(self, how: Outcome) -> str:
        # `stop` beside calls would stop the harness; the calls are complete, so they win here.
        if how == "tool_use" or (how == "stop_sequence" and self._called):
            return self._calls.reason
        return REASONS[how]

    def _message(self, reply: Reply) -> dict[str, Any]:
        text, reasoning, calls = [], [], []
        for block in reply.blocks:
            match block:
                case Text():
                    text.append(block.text)
                case Reasoning():
                    reasoning.append(block.text)
                case ToolCall():
                    self._called = True
                    calls.append(block)
                case CutCall(call=call):
                    calls.append(call)
                case ToolAnswer() | ToolListing():
                    pass
                case _:
                    assert_never(block)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": GAP.join(text) or None,
            "refusal": None,
        }
        if self._show and (thought := GAP.join(reasoning)):
            message |= {"reasoning_content": thought, "reasoning": thought}
            if self._details is not None:
                message["reasoning_details"] = self._details.whole(reasoning)
        return message | (self._calls.whole(calls) if calls else {})

    def _shell(self, kind: str) -> dict[str, Any]:
        return {
            "id": ids.completion(self._choice.completion or self._turn.id),
            "object": kind,
            "created": self._created,
            "model": self._model,
        }


def logprobs(drawn: Sequence[Drawn]) -> dict[str, Any]:
    """How likely the tokens of some text were."""
    return {"content": spelled(drawn), "refusal": None}


def usage_of(usage: Usage) -> dict[str, Any]:
    """OpenAI's `prompt_tokens` counts what the cache held too."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
