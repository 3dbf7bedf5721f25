"""What a replayed turn answered: its shape and its times, read from any API's answer.

Read with as little as it takes, streamed or whole: the name of each block, the end, the tokens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

from msgspec import Struct

from observe.turn_traces import TurnTrace
from turns.turn import Api

ENDS = {  # how each API says that a turn ended, in the words of `turns.events.Stop`
    "end_turn": "end",
    "stop": "end",
    "completed": "end",
    "tool_use": "tool_calls",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "length": "length",
    "incomplete": "length",
    "stop_sequence": "stop_sequence",
}


class Heard(Struct):
    """A reply. `shape` is its calls in their order; times in seconds, `ttft` -1 if not streamed."""

    shape: list[str]
    seconds: float
    ttft: float
    output: int
    id: str = ""
    stop: str = ""

    @classmethod
    def of(cls, trace: TurnTrace) -> Heard:
        calls = [block.tool for block in trace.blocks if block.kind == "call" and not block.cut]
        return cls(calls, trace.seconds, trace.ttft, trace.output, "", trace.stop)


def hear(answer: HTTPResponse, api: Api, *, stream: bool, began: float) -> Heard:
    """The reply of an open answer. `began` is a reading of `time.perf_counter`."""
    ttft = -1.0
    if not stream:
        whole = json.loads(answer.read())
        shape, output, name, stop = _whole(api, whole)
    else:
        shape, output, name, stop = [], 0, "", ""
        for event in events(answer):
            if ttft < 0:
                ttft = time.perf_counter() - began
            found = _event(api, event)
            shape += found.shape
            output, name, stop = found.output or output, found.id or name, found.stop or stop
    return Heard(shape, time.perf_counter() - began, ttft, output, name, ENDS.get(stop, stop))


def events(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The JSON of the events of an SSE stream, as they come."""
    for line in answer:
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield json.loads(data)


def _whole(api: Api, body: dict[str, Any]) -> tuple[list[str], int, str, str]:
    name, usage = str(body.get("id", "")), body.get("usage") or {}
    match api:
        case "messages":
            blocks = body.get("content", ())
            calls = [block["name"] for block in blocks if block["type"] == "tool_use"]
            return calls, usage.get("output_tokens", 0), name, str(body.get("stop_reason"))
        case "responses":
            items = body.get("output", ())
            return _items(items), usage.get("output_tokens", 0), name, str(body.get("status"))
        case "chat":
            choice = body["choices"][0]
            calls = [_called(call) for call in choice["message"].get("tool_calls") or ()]
            stop = str(choice.get("finish_reason"))
            return calls, usage.get("completion_tokens", 0), name, stop


def _event(api: Api, event: dict[str, Any]) -> Heard:
    found = Heard([], 0.0, -1.0, 0)
    match api:
        case "messages":
            block = event.get("content_block") or {}
            found.shape = [block["name"]] if block.get("type") == "tool_use" else []
            found.output = (event.get("usage") or {}).get("output_tokens", 0)
            found.stop = (event.get("delta") or {}).get("stop_reason") or ""
            found.id = (event.get("message") or {}).get("id", "")
        case "responses":
            if event.get("type") == "response.output_item.done":
                found.shape = _items([event["item"]])
            response = event.get("response") or {}
            found.id = response.get("id", "")
            if event.get("type") in {"response.completed", "response.incomplete"}:
                found.stop = str(response.get("status"))
                found.output = (response.get("usage") or {}).get("output_tokens", 0)
        case "chat":
            found.id = event.get("id", "")
            found.output = (event.get("usage") or {}).get("completion_tokens", 0)
            for choice in event.get("choices", ()):
                calls = (choice.get("delta") or {}).get("tool_calls") or ()
                found.shape += [_called(call) for call in calls if _called(call)]
                found.stop = choice.get("finish_reason") or ""
    return found


def _items(items: Any) -> list[str]:
    return [item["name"] for item in items if item["type"] in {"function_call", "custom_tool_call"}]


def _called(call: dict[str, Any]) -> str:
    named = call.get("function") or call.get("custom") or {}
    return str(named.get("name") or "")
