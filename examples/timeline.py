"""Prints the timeline of a Messages stream: what came when, as the model thinks, calls and stops.

Usage: python examples/timeline.py BASE_URL [MODEL] [WORDS]

Sends a system prompt and two tools, asks what WORDS ask (by default the sum below) and prints one
line per piece as it arrives. Needs nothing but Python.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

WORDS = "Think carefully about what 15 * 23 equals, then use the calculator to verify"
SYSTEM = "You are a careful assistant. Think before you answer, and use tools to verify."


def parameter(name: str, what: str) -> dict[str, Any]:
    field = {"type": "string", "description": what}
    return {"type": "object", "properties": {name: field}, "required": [name]}


TOOLS = [
    {
        "name": "calculator",
        "description": "Evaluates an arithmetic expression.",
        "input_schema": parameter("expression", "for example 2 + 2"),
    },
    {
        "name": "weather",
        "description": "The weather at a place, now.",
        "input_schema": parameter("place", "a city"),
    },
]


def body(model: str, words: str) -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": 1024,
        "stream": True,
        "system": SYSTEM,
        "tools": TOOLS,
        "messages": [{"role": "user", "content": words}],
    }


def first_model(base: str) -> str:
    """The model that the server lists first."""
    with urllib.request.urlopen(f"{base}/v1/models", timeout=30) as answer:
        return str(json.load(answer)["data"][0]["id"])


def stream(base: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a stream as they arrive."""
    url = f"{base}/v1/messages"
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    post = urllib.request.Request(url, json.dumps(request).encode(), headers)
    with urllib.request.urlopen(post, timeout=300) as answer:
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def told(event: dict[str, Any]) -> tuple[str, str] | None:
    """An event as a person reads it: what it is, and what it brings."""
    match event:
        case {"type": "message_start", "message": {"usage": usage}}:
            cached = usage["cache_read_input_tokens"]
            return "start", f"{usage['input_tokens'] + cached} prompt tokens, {cached} cached"
        case {"type": "content_block_start", "content_block": {"type": "tool_use"} as block}:
            return "tool call begins", f"{block['name']}  ({block['id']})"
        case {"type": "content_block_start", "content_block": block}:
            return f"{block['type']} begins", ""
        case {"type": "content_block_delta", "delta": {"thinking": piece}}:
            return "  thinking", repr(piece)
        case {"type": "content_block_delta", "delta": {"text": piece}}:
            return "  text", repr(piece)
        case {"type": "content_block_delta", "delta": {"partial_json": piece}}:
            return "  arguments", repr(piece)
        case {"type": "content_block_delta", "delta": {"signature": _}}:
            return "  signature", "(opaque)"
        case {"type": "content_block_stop"}:
            return "block ends", ""
        case {"type": "message_delta", "delta": delta, "usage": usage}:
            return "stop", f"{delta['stop_reason']}, {usage['output_tokens']} tokens"
        case {"type": "error", "error": error}:
            return "error", error["message"]
        case {"type": "ping"}:
            return "ping", ""
        case _:
            return None


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    base = sys.argv[1].rstrip("/")
    try:
        model = sys.argv[2] if len(sys.argv) > 2 else first_model(base)
        request = body(model, sys.argv[3] if len(sys.argv) > 3 else WORDS)
        print(f"{model}: {request['messages'][0]['content']}\n")
        began = time.monotonic()
        for event in stream(base, request):
            line = told(event)
            if line is not None:
                what, brings = line
                print(f"{1000 * (time.monotonic() - began):7.0f} ms  {what:17} {brings}".rstrip())
    except urllib.error.HTTPError as error:
        print(f"{error.code}: {error.read().decode(errors='replace')}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{base} does not answer ({error}): start it with ./run scripted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
