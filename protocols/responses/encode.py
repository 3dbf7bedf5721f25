"""A turn's events as Responses events, and its fold as a whole response.

Every block is an output item with its own slot: added, filled, done, in that order, before the
next. Ids and sequence numbers are given once. The item of a call that was cut is never done:
Codex runs a tool the moment its item is. `output` of the last event repeats the items as they were
done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec

from protocols import dispatch, errors, ids, sse
from protocols.drawn import spelled
from protocols.outcome import Outcome, outcome, outcome_of
from protocols.responses.open_items import (
    OpenCall,
    OpenCompaction,
    OpenItem,
    OpenReasoning,
    OpenText,
)
from protocols.responses.output import Item, Output
from protocols.responses.served_items import Answer, OpenConsent, OpenServed, ServedItems, listed
from protocols.seals import Seal
from protocols.tool_servers import served
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
from turns.servers import Served
from turns.turn import Turn

REASONS: dict[Outcome, str] = {"length": "max_output_tokens", "cancelled": "cancelled"}


class ResponsesEncoder:
    """One turn as Responses events."""

    def __init__(self, turn: Turn, *, created: int, model: str, seal: Seal | None = None) -> None:
        self.finished = False
        self._turn = turn
        self._output = Output(turn, seal)
        self._written = OpenCompaction if self._output.compact else OpenText
        self._head = _head(turn, created, model)
        self._items: list[Item] = []
        self._open: OpenItem | None = None
        self._sequence = 0
        self._begun = False
        self._calls = 0
        self._called = False
        self._cut = False
        self._usage = Usage()
        self._served = served(turn)
        self._ours = ServedItems(turn)
        self._waiting: dict[int, tuple[int, OpenServed]] = {}
        """Calls that we make and that are not answered yet: where their items stand, and these."""

    def encode(self, events: Sequence[Event]) -> bytes:
        return b"".join([self._event(event) for event in events if not self.finished])

    def keepalive(self) -> bytes:
        if self.finished:
            return b""
        return self._lifecycle("response.in_progress") if self._begun else self._begin()

    def whole(self, reply: Reply) -> tuple[int, bytes]:
        if reply.failed is not None:
            status, _, body = errors.openai(errors.from_failed(reply.failed), "")
            return status, body
        how = outcome_of(reply.stop, reply.blocks, self._served)
        return 200, sse.dumps(self._ending(how, self._whole_items(reply), reply.usage))

    def _whole_items(self, reply: Reply) -> list[Item]:
        items: list[Item] = []
        answers = {b.index: b for b in reply.blocks if isinstance(b, ToolAnswer)}
        waiting: set[int] = set()
        texts = iter(reply.drawn)
        calls = 0
        for block in reply.blocks:
            index = len(items)
            match block:
                case Text(text=text):
                    items.append(self._output.message(index, text, "completed", next(texts, ())))
                case Reasoning(text=text):
                    items.append(self._output.reasoning(index, text, "completed"))
                case ToolCall(name=name) if (tool := self._served.get(name)) is not None:
                    answer = answers.get(calls)
                    items.append(self._served_item(index, tool, block, answer, bool(waiting)))
                    waiting |= set() if answer is None else {calls}
                    calls += 1
                case ToolCall():
                    items.append(self._output.call(index, block, calls, "completed"))
                    calls += 1
                case CutCall(call=call):
                    items.append(self._output.call(index, call, calls, "incomplete"))
                    calls += 1
                case ToolAnswer(index=answered):
                    waiting.discard(answered)
                case ToolListing(server=server, tools=tools):
                    items.append(self._ours.listing(index, server, tools))
                case _:
                    assert_never(block)
        return items

    def _served_item(
        self, index: int, tool: Served, call: ToolCall, answer: ToolAnswer | None, beside: bool
    ) -> Item:
        if self._ours.asks(tool, call.id):
            return self._ours.consent(index, tool, call)
        given = None if answer is None else Answer(answer.text, answer.is_error)
        item_id = self._ours.call_id(index, beside=beside)
        status = "calling" if answer is None else "completed"
        return self._ours.call(item_id, tool, call, status, given)

    def aside(self, name: str, fields: dict[str, Any]) -> bytes:
        return self._emit(name, fields)

    def called(self, started: ToolCallStarted, arguments: str) -> dict[str, Any]:
        return self._output.dispatched(ToolCall(started.id, started.name, arguments), started.index)

    def _event(self, event: Event) -> bytes:
        match event:
            case TextDelta(text=text, drawn=drawn):
                return self._drawn(event, drawn) if drawn else self._delta(event, text)
            case ReasoningDelta(text=text):
                return self._delta(event, text)
            case ToolArgumentsDelta(json=json):
                return self._grow(json)
            case TextEnded() | ReasoningEnded():
                return self._close()
            case ToolCallStarted():
                return self._add(self._opened(event))
            case ToolCallAnswered(index=index, text=text, is_error=is_error):
                return self._answer(index, Answer(text, is_error))
            case ToolCallProgressed(index=index, synopsis=synopsis):
                return self._progress(index, synopsis)
            case ToolsListed(server=server, tools=tools):
                item = self._ours.listing(len(self._items), server, tools)
                self._items.append(item)
                said = listed(item, len(self._items) - 1)
                return b"".join([self._emit(kind, fields) for kind, fields in said])
            case ToolCallReady(arguments=arguments):
                self._called = True
                rest = self._open.rest(arguments) if self._open else ""
                return (self._grow(rest) if rest else b"") + self._close()
            case ToolCallCut():
                return self._abandon()
            case TurnStarted(input_tokens=tokens, cached_tokens=cached):
                self._usage = Usage(tokens, cached)
                return b"" if self._begun else self._begin()
            case TurnEnded(stop=stop, usage=usage):
                how = outcome(stop, called=self._called, cut=self._cut)
                return self._end(self._ending(how, self._items, usage))
            case TurnFailed():
                return self._failed(event)
            case _:
                assert_never(event)

    def _delta(self, event: TextDelta | ReasoningDelta, text: str) -> bytes:
        added = b""
        if self._open is None:
            opened = self._written if isinstance(event, TextDelta) else OpenReasoning
            added = self._add(opened(self._output, len(self._items)))
        return added + self._grow(text)

    def _opened(self, event: ToolCallStarted) -> OpenItem:
        place = len(self._items)
        tool = self._served.get(event.name)
        if tool is None:
            return OpenCall(self._output, place, event)
        if self._ours.asks(tool, event.id):
            return OpenConsent(self._output, place, event, self._ours, tool)
        beside = bool(self._waiting)
        made = OpenServed(self._output, place, event, self._ours, tool, beside=beside)
        self._waiting[event.index] = (place, made)
        return made

    def _answer(self, index: int, answer: Answer) -> bytes:
        place, item = self._waiting.pop(index)
        item.answer = answer
        self._items[place] = item.whole("completed")
        return b"".join([self._emit(kind, fields) for kind, fields in item.answered()])

    def _progress(self, index: int, synopsis: str) -> bytes:
        if (found := self._waiting.get(index)) is None:
            return b""
        return dispatch.interim(self, self._turn, *found[1].progressed(synopsis))

    def _drawn(self, event: TextDelta, drawn: tuple[Drawn, ...]) -> bytes:
        """A piece of text that says how likely its tokens were."""
        plain = self._delta(event, event.text)
        if isinstance(self._open, OpenText):
            self._open.drawn += drawn
        told = b'"logprobs":' + sse.dumps(spelled(drawn))
        head, _, tail = plain.rpartition(b'"logprobs":[]')
        return head + told + tail if head else plain

    def _grow(self, text: str) -> bytes:
        # The hot path: one JSON string between two pieces that were rendered with the item.
        item = self._open
        if item is None or not (shown := item.grow(text)):
            return b""
        self._sequence += 1
        return item.head + sse.quote(shown) + item.tail % (self._sequence - 1)

    def _add(self, item: OpenItem) -> bytes:
        self._open = item
        return b"".join([self._emit(kind, fields) for kind, fields in item.added()])

    def _close(self) -> bytes:
        item, self._open = self._open, None
        if item is None:
            return b""
        self._items.append(item.whole("completed"))
        return b"".join([self._emit(kind, fields) for kind, fields in item.done()])

    def _abandon(self) -> bytes:
        self._cut = True
        if self._open is not None:
            self._items.append(self._open.whole("incomplete"))
            self._open = None
        return b""

    def _begin(self) -> bytes:
        self._begun = True
        return self._lifecycle("response.created") + self._lifecycle("response.in_progress")

    def _lifecycle(self, kind: str) -> bytes:
        response = self._response("in_progress", [], None)
        return self._emit(kind, {"response": response})

    def _end(self, response: dict[str, Any]) -> bytes:
        self.finished = True
        return self._emit(f"response.{response['status']}", {"response": response})

    def _failed(self, event: TurnFailed) -> bytes:
        begin = b"" if self._begun else self._begin()
        if self._open is not None:
            self._items.append(self._open.whole("incomplete"))
        return begin + self._end(self.failed(event))

    def failed(self, event: TurnFailed) -> dict[str, Any]:
        """The response of a turn that died."""
        response = self._response("failed", self._items, self._usage)
        code = errors.TABLE[event.kind].code or "invalid_prompt"
        response["error"] = {"code": code, "message": event.message}
        return response

    def waiting(self, status: str) -> dict[str, Any]:
        """The response before anything of it was made: `queued` or `in_progress`."""
        return self._response(status, [], None)

    def _ending(self, how: Outcome, items: list[Item], usage: Usage) -> dict[str, Any]:
        reason = REASONS.get(how)
        response = self._response("incomplete" if reason else "completed", items, usage)
        if reason:
            response["incomplete_details"] = {"reason": reason}
        return response

    def _response(self, status: str, items: list[Item], usage: Usage | None) -> dict[str, Any]:
        return {
            "id": self._head["id"],
            "object": "response",
            "status": status,
            "error": None,
            "incomplete_details": None,
            "output": items,
            "usage": None if usage is None else usage_of(usage),
            **self._head,
        }

    def _emit(self, kind: str, fields: dict[str, Any]) -> bytes:
        number = self._sequence
        self._sequence += 1
        return sse.named(
            kind.encode(), sse.dumps({"type": kind, "sequence_number": number, **fields})
        )


def usage_of(usage: Usage) -> dict[str, Any]:
    """OpenAI's `input_tokens` counts what the cache held too. No write to it is charged here."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _head(turn: Turn, created: int, model: str) -> dict[str, Any]:
    """What stays the same in every state of the response; large parts are rendered once."""
    echoed = dict(turn.echo.get("response") or {})
    for name in ("tools", "instructions"):
        if name in echoed:
            echoed[name] = msgspec.Raw(sse.dumps(echoed[name]))
    return {
        "id": ids.response(turn.id),
        "created_at": created,
        "completed_at": None,
        "model": model,
        **echoed,
    }
