"""What a client makes of a stream: independent folds of the three APIs' events."""

from __future__ import annotations

import json
from typing import Any

Parsed = list[tuple[str | None, Any]]


def messages(events: Parsed) -> dict[str, Any]:
    """A Messages stream as a message; a call whose input never became an object is left out."""
    message: dict[str, Any] = {}
    content: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    for _, event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                content[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                delta, block = event["delta"], content[event["index"]]
                match delta["type"]:
                    case "text_delta":
                        block["text"] += delta["text"]
                    case "thinking_delta":
                        block["thinking"] += delta["thinking"]
                    case "signature_delta":
                        block["signature"] += delta["signature"]
                    case "input_json_delta":
                        inputs.setdefault(event["index"], "")
                        inputs[event["index"]] += delta["partial_json"]
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
    return message | {"content": _inputs(content, inputs)}


def _inputs(content: dict[int, dict[str, Any]], inputs: dict[int, str]) -> list[dict[str, Any]]:
    found = []
    for index, block in sorted(content.items()):
        if block["type"] == "tool_use":
            try:
                block["input"] = json.loads(inputs.get(index, ""))
            except ValueError:
                continue
        found.append(block)
    return found


def chat(events: Parsed) -> dict[str, Any]:
    """A Chat stream as a completion."""
    message: dict[str, Any] = {"content": None}
    calls: dict[int, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for _, chunk in events:
        if chunk == "[DONE]":
            continue
        whole |= {name: chunk[name] for name in ("id", "created", "model")}
        if chunk.get("usage"):
            whole["usage"] = chunk["usage"]
        for choice in chunk["choices"]:
            whole["finish_reason"] = choice["finish_reason"]
            for name, value in choice["delta"].items():
                if name == "tool_calls":
                    for call in value:
                        _grow(calls, call)
                elif value is not None:
                    message[name] = (message.get(name) or "") + value
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return whole | {"message": message}


def _grow(calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    call = calls.setdefault(delta["index"], {"function": {"name": "", "arguments": ""}})
    for name in ("id", "type"):
        if name in delta:
            call[name] = delta[name]
    for name, value in delta["function"].items():
        call["function"][name] += value


def responses(events: Parsed) -> list[dict[str, Any]]:
    """The output of a Responses stream, built from deltas alone, without any `done` event."""
    items: dict[int, dict[str, Any]] = {}
    for _, event in events:
        kind = event["type"]
        if kind == "response.output_item.added":
            items[event["output_index"]] = dict(event["item"])
            continue
        item = items.get(event.get("output_index", -1))
        if item is None:
            continue
        if kind in ("response.content_part.added", "response.reasoning_summary_part.added"):
            slot = "content" if kind == "response.content_part.added" else "summary"
            item[slot] = [*item[slot], dict(event["part"])]
        elif kind in ("response.output_text.delta", "response.reasoning_text.delta"):
            item["content"][event["content_index"]]["text"] += event["delta"]
        elif kind == "response.reasoning_summary_text.delta":
            item["summary"][event["summary_index"]]["text"] += event["delta"]
        elif kind == "response.function_call_arguments.delta":
            item["arguments"] += event["delta"]
        elif kind == "response.custom_tool_call_input.delta":
            item["input"] += event["delta"]
    return [items[index] for index in sorted(items)]
