"""A plain request of each API."""

from __future__ import annotations

import copy
from typing import Any

from tests.serving.server import MODEL

PATHS = {
    "messages": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
}
QUESTION = "Weather in Bergen?"
ASKS: dict[str, dict[str, Any]] = {
    "messages": {
        "model": MODEL,
        "max_tokens": 400,
        "messages": [{"role": "user", "content": QUESTION}],
    },
    "chat": {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}]},
    "responses": {"model": MODEL, "input": QUESTION},
}
SCHEMA = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["place"],
}
FORECAST = {"name": "forecast", "description": "Outlook"}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "messages": [{**FORECAST, "input_schema": SCHEMA}],
    "chat": [{"type": "function", "function": {**FORECAST, "parameters": SCHEMA}}],
    "responses": [{"type": "function", **FORECAST, "parameters": SCHEMA}],
}


def ask(api: str, **fields: Any) -> dict[str, Any]:
    """The request with fields added or changed."""
    return copy.deepcopy(ASKS[api]) | fields
