"""Requests of each API for the same thing: the words decide what the scripted engine answers."""

from __future__ import annotations

from typing import Any

APIS = ["messages", "responses", "chat"]
PATHS = {
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
}
MODEL = "lab-model"
CALCULATOR = {
    "type": "object",
    "properties": {
        "expression": {"type": "string"},
        "steps": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["expression"],
}
WEATHER = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
SCHEMAS = {"calculator": CALCULATOR, "weather": WEATHER}


def tools(api: str) -> list[dict[str, Any]]:
    """The calculator and the weather, as an API declares them."""
    match api:
        case "messages":
            return [{"name": name, "input_schema": schema} for name, schema in SCHEMAS.items()]
        case "responses":
            return [
                {"type": "function", "name": name, "parameters": schema, "strict": False}
                for name, schema in SCHEMAS.items()
            ]
        case _:
            return [
                {"type": "function", "function": {"name": name, "parameters": schema}}
                for name, schema in SCHEMAS.items()
            ]


def ask(api: str, words: str, *, stream: bool = True, **fields: Any) -> dict[str, Any]:
    """A request; `max_tokens` in `fields` is spelled as the API spells it."""
    limit = fields.pop("max_tokens", 4096)
    body: dict[str, Any] = {"model": MODEL, "stream": stream}
    said = [{"role": "user", "content": words}]
    match api:
        case "messages":
            body |= {"messages": said, "max_tokens": limit}
        case "responses":
            body |= {"input": said, "max_output_tokens": limit}
        case _:
            body |= {"messages": said, "max_completion_tokens": limit}
            if stream:
                body["stream_options"] = {"include_usage": True}
    return body | fields
