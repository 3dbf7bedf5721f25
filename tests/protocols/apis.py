"""A turn and an encoder of each API, and what the checkers of the corpus say of a stream."""

from __future__ import annotations

import importlib.util
import json
import os
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from protocols.registry import APIS, Encoder
from turns.events import Event
from turns.turn import Turn

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("TREADLE_CORPUS", ROOT.parent / "shared" / "corpus"))
FIXTURES = Path(os.environ.get("TREADLE_FIXTURES", ROOT.parent / "shared" / "fixtures"))
NAMES = ["messages", "responses", "chat"]
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}
REQUESTS: dict[str, dict[str, Any]] = {
    "messages": {
        "model": "m",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Weather in Bergen?"}],
        "tools": [{"name": "forecast", "input_schema": SCHEMA}],
    },
    "chat": {
        "model": "m",
        "messages": [{"role": "user", "content": "Weather in Bergen?"}],
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "forecast", "parameters": SCHEMA}}],
    },
    "responses": {
        "model": "m",
        "input": "Weather in Bergen?",
        "include": ["reasoning.encrypted_content"],
        "tools": [
            {
                "type": "namespace",
                "name": "weather",
                "tools": [{"type": "function", "name": "forecast"}],
            },
            {"type": "custom", "name": "apply_patch"},
            {"type": "local_shell"},
            {"type": "tool_search", "execution": "client", "parameters": SCHEMA},
        ],
    },
}


def decode(api: str, headers: dict[str, str] | None = None, **fields: Any) -> Turn:
    """The sample request of an API, with fields changed, as a turn."""
    body = json.dumps(REQUESTS[api] | fields).encode()
    return APIS[api].decode(body, headers or {}, turn_id="turn_7f")


def encoder(api: str, turn: Turn | None = None, **fields: Any) -> Encoder:
    turn = turn or decode(api, stream=True, **fields)
    return APIS[api].encoder(turn, created=1_700_000_000, model="m")


def stream(api: str, events: list[Event], **fields: Any) -> bytes:
    """The whole stream of a turn."""
    return encoder(api, **fields).encode(events)


def parse(raw: bytes) -> list[tuple[str | None, Any]]:
    """SSE bytes as (event name, JSON) pairs; own reading, so the corpus is not needed."""
    found = []
    for block in raw.decode().split("\n\n"):
        name, data = None, None
        for line in block.split("\n"):
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = line[6:]
        if data is not None:
            found.append((name, data if data == "[DONE]" else json.loads(data)))
    return found


@cache
def strict() -> ModuleType:
    """The corpus's strict checkers."""
    path = CORPUS / "tools" / "strict.py"
    if not path.exists():
        pytest.skip(f"no strict checker at {path}; set TREADLE_CORPUS")
    spec = importlib.util.spec_from_file_location("strict", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problems(api: str, raw: bytes, extra: tuple[str, ...] = ()) -> list[str]:
    """What the corpus's strict checker finds wrong with a stream."""
    check = getattr(strict(), {"messages": "anthropic"}.get(api, api))
    return check(strict().parse_sse(raw.decode()), extra)
