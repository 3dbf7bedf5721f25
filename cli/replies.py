"""What a replayed turn answered: its shape, its end and its times, read from any API's answer.

Read with as little as it takes, streamed or whole: the name of each call, the end, the tokens. An
answer that says that it failed, or that does not come to its end, is no reply.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

from msgspec import Struct, field

from observe.turn_traces import TurnTrace
from protocols import tool_servers
from protocols.responses.declared import CLIENT_TOOLS, flat_name
from turns.events import Stop
from turns.turn import Api

ENDS: dict[Api, dict[str, Stop]] = {
    "messages": {
        "end_turn": "end",
        "tool_use": "tool_use",
        "max_tokens": "length",
        "stop_sequence": "stop_sequence",
        "pause_turn": "paused",
    },
    "chat": {
        "stop": "end",
        "tool_calls": "tool_use",
        "function_call": "tool_use",
        "length": "length",
    },
    "responses": {"completed": "end", "incomplete": "length", "max_output_tokens": "length"},
}
"""How each API says that a turn ended. What it has no word for it calls an ordinary end: Chat does
so with a stop sequence, Responses with calls too, which stand in its output.
"""

CANCELLED, FAILED = "cancelled", "failed"
"""Ends of recorded turns alone: nobody waited for the end, and there was none."""

CALLS = {"tool_search_call": "tool_search"} | {
    item: name for name, (item, _, _) in CLIENT_TOOLS.items()
}
"""Items of Responses that are calls and do not name their tool."""

DONE: dict[str, Any] = {}
"""What Chat writes behind its last event, `[DONE]`."""

LONGEST = 300  # characters of somebody else's message


class BrokenReplyError(Exception):
    """An answer that is no reply: it failed, broke off, or cannot be read."""


class Heard(Struct):
    """A reply. `shape` is the calls that it began, in their order; `stop` as in `turns.events`, as
    far as its API can say it; times in seconds, `ttft` -1 if not streamed.
    """

    shape: list[str]
    seconds: float
    ttft: float
    output: int
    id: str = ""
    stop: str = ""

    @classmethod
    def of(cls, trace: TurnTrace) -> Heard:
        """A recorded turn, as its client was told it."""
        # A whole message leaves out a call that was cut; all else shows what was begun.
        hidden = trace.api == "messages" and not trace.stream
        calls = [b for b in trace.blocks if b.kind == "call" and not (b.cut and hidden)]
        shape = [block.tool for block in calls]
        return cls(shape, trace.seconds, trace.ttft, trace.output, "", _recorded(trace))

    def like(self, then: Heard) -> bool:
        """Whether this reply is of the shape that one was, and ended like it."""
        if then.stop == CANCELLED:  # its client left: how it would have gone on is not known
            return self.shape[: len(then.shape)] == then.shape
        return (self.shape, self.stop) == (then.shape, then.stop)


class Part(Struct):
    """What an event, or a whole answer, says of a reply; `over` where it is the last word."""

    calls: list[str] = field(default_factory=list)
    output: int = 0
    id: str = ""
    stop: str = ""
    over: bool = False


def hear(answer: HTTPResponse, api: Api, *, stream: bool, began: float) -> Heard:
    """The reply of an open answer. `began` is a reading of `time.perf_counter`.

    Raises BrokenReplyError, in words, for what failed or did not come to its end.
    """
    ttft, heard = -1.0, Part()
    for event in events(answer) if stream else [_json(answer.read(), "the answer")]:
        if stream and ttft < 0:
            ttft = time.perf_counter() - began
        found = _part(api, event, stream=stream)
        heard.calls += found.calls
        heard.output = found.output or heard.output
        heard.id, heard.stop = found.id or heard.id, found.stop or heard.stop
        heard.over = heard.over or found.over
    if not heard.over:
        raise BrokenReplyError("the stream broke off before its end")
    if not heard.stop:
        raise BrokenReplyError("the answer does not say how it ended")
    seconds = time.perf_counter() - began
    stop = ENDS[api].get(heard.stop, heard.stop)
    return Heard(heard.calls, seconds, ttft, heard.output, heard.id, stop)


def events(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The JSON of the events of an SSE stream, as they come; DONE for `[DONE]`."""
    for line in answer:
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:"):
            yield DONE if data == b"[DONE]" else _json(data, "an event of the stream")


def _json(data: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BrokenReplyError(f"{what} is no JSON object: {_short(data.decode(errors='replace'))}")
    return value


def _part(api: Api, event: dict[str, Any], *, stream: bool) -> Part:
    if (failure := _failure(event)) is not None:
        raise BrokenReplyError(f"the turn failed: {failure}")
    try:
        return _event(api, event) if stream else _whole(api, event)
    except (LookupError, TypeError, AttributeError):
        said = _short(json.dumps(event, ensure_ascii=False))
        raise BrokenReplyError(f"this is no answer of the API {api}: {said}") from None


def _failure(event: dict[str, Any]) -> str | None:
    """What an error says, in whichever of the APIs' shapes it comes; None for what is none."""
    response = event.get("response")
    of = response if event.get("type") == "response.failed" and response else event
    error = of.get("error") if isinstance(of, dict) else None
    failed = event.get("type") in {"error", "response.failed"} or event.get("status") == FAILED
    if not error and not failed:
        return None
    told = error.get("message") if isinstance(error, dict) else error
    return _short(str(told or event.get("message") or "it does not say why"))


def _whole(api: Api, body: dict[str, Any]) -> Part:
    usage = body.get("usage") or {}
    found = Part(id=str(body.get("id", "")), over=True)
    match api:
        case "messages":
            found.calls = [name for block in body["content"] if (name := _used(block))]
            found.output, found.stop = _tokens(usage), str(body["stop_reason"] or "")
        case "responses":
            found.calls = [name for item in body["output"] if (name := _item(item))]
            found.output, found.stop = _tokens(usage), _status(body)
        case "chat":
            choice = body["choices"][0]
            found.calls = _called(choice["message"])
            found.output = _tokens(usage)
            found.stop = str(choice["finish_reason"] or "")
    return found


def _event(api: Api, event: dict[str, Any]) -> Part:
    found = Part(over=api == "chat" and event is DONE)
    kind, usage = event.get("type"), event.get("usage") or {}
    match api:
        case "messages":
            name = _used(event.get("content_block") or {})
            found.calls = [name] if name else []
            found.output = _tokens(usage)
            found.stop = str((event.get("delta") or {}).get("stop_reason") or "")
            found.id = str((event.get("message") or {}).get("id", ""))
            found.over = kind == "message_stop"
        case "responses":
            response = event.get("response") or {}
            found.id = response.get("id", "")
            if kind == "response.output_item.added" and (name := _item(event["item"])):
                found.calls = [name]
            if kind in {"response.completed", "response.incomplete"}:
                found.stop, found.over = _status(response), True
                found.output = _tokens(response.get("usage") or {})
        case "chat":
            found.id = event.get("id", "")
            found.output = _tokens(usage)
            for choice in event.get("choices", ()):
                found.calls += _called(choice.get("delta") or {})
                found.stop = str(choice.get("finish_reason") or "")
    return found


def _recorded(trace: TurnTrace) -> str:
    """How a recorded turn ended, in what its API can say."""
    if trace.failed or trace.stop == CANCELLED:
        return FAILED if trace.failed else CANCELLED
    if any(block.cut for block in trace.blocks):
        return "length"  # what every API says of a turn with half a call (`protocols.outcome`)
    return trace.stop if trace.stop in ENDS[trace.api].values() else "end"


def _status(response: dict[str, Any]) -> str:
    """How a response ended: its status, or why it is incomplete. "" while it is not over."""
    status = str(response["status"])
    if status in {"queued", "in_progress"}:
        return ""
    return str((response.get("incomplete_details") or {}).get("reason") or status)


def _tokens(usage: dict[str, Any]) -> int:
    """Generated tokens, by either of their names; 0 where they are not told."""
    told = usage.get("output_tokens") or usage.get("completion_tokens")
    return told if isinstance(told, int) else 0


def _used(block: dict[str, Any]) -> str:
    """The tool that a block of a message calls; "" for another block."""
    if block.get("type") == "mcp_tool_use":
        return tool_servers.flat_name(block["server_name"], block["name"])
    return str(block["name"]) if block.get("type") == "tool_use" else ""


def _item(item: dict[str, Any]) -> str:
    """The tool that an item of a response calls, as the model knows it; "" for another item."""
    match item["type"]:
        case "function_call" | "custom_tool_call":
            return flat_name(item.get("namespace") or "", str(item["name"]))
        case "mcp_call" | "mcp_approval_request":
            return tool_servers.flat_name(item["server_label"], item["name"])
        case kind:
            return CALLS.get(kind, "")


def _called(message: dict[str, Any]) -> list[str]:
    """The tools that a message, or a piece of one, calls; a later piece of a call names none."""
    calls = [call.get("function") or call.get("custom") for call in message.get("tool_calls") or ()]
    named = [*calls, message.get("function_call")]
    return [str(call["name"]) for call in named if call and call.get("name")]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."
