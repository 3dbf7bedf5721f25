"""The OpenAPI document of the server, made from the structs that requests are read into.

What a request may hold is wider than any schema says: unknown fields are tolerated and reported.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from protocols import sse, tokenize
from protocols.anthropic import wire as anthropic
from protocols.chat import wire as chat
from protocols.responses import wire as responses

REF = "#/components/schemas/{name}"
BODIES: dict[str, tuple[Any, str]] = {
    "/v1/messages": (anthropic.Request, "Run a turn (Anthropic Messages)"),
    "/v1/messages/count_tokens": (anthropic.Request, "Count the tokens of a turn"),
    "/v1/chat/completions": (chat.Request, "Run a turn (OpenAI Chat Completions)"),
    "/v1/responses": (responses.Request, "Run a turn (OpenAI Responses)"),
    "/v1/responses/input_tokens": (responses.Request, "Count the tokens of a turn"),
    "/v1/responses/compact": (responses.Request, "Sum a conversation up"),
    "/v1/tokenize": (tokenize.Tokenize, "Token ids of a text or of messages"),
    "/v1/detokenize": (tokenize.Detokenize, "The text of token ids"),
}
PAGES: dict[str, dict[str, str]] = {
    "/v1/models": {"get": "The models"},
    "/v1/models/{model}": {"get": "One model"},
    "/v1/responses/{response_id}": {"get": "A stored response", "delete": "Forget it"},
    "/v1/responses/{response_id}/cancel": {"post": "Cancel a background response"},
    "/v1/responses/{response_id}/input_items": {"get": "What a response was asked"},
    "/v1/conversations": {"post": "Begin a conversation"},
    "/v1/conversations/{conversation_id}": {
        "get": "A conversation",
        "post": "Change its metadata",
        "delete": "Forget it",
    },
    "/v1/conversations/{conversation_id}/items": {"get": "Its items", "post": "Add items"},
    "/health": {"get": "Whether engines are up"},
    "/metrics": {"get": "Figures for Prometheus"},
}


@cache
def document(models: tuple[str, ...] = ()) -> bytes:
    """The document as JSON; `models` are examples of what a request may name."""
    kinds = list(dict.fromkeys(kind for kind, _ in BODIES.values()))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    shapes = dict(zip(kinds, schemas, strict=True))
    for schema in components.values():
        if "model" in schema["properties"] and models:
            schema["properties"]["model"] = {"type": "string", "examples": list(models)}
    paths: dict[str, Any] = {
        path: {"post": _operation(told, shapes[kind])} for path, (kind, told) in BODIES.items()
    }
    for path, operations in PAGES.items():
        paths[path] = {how: _operation(told) for how, told in operations.items()}
        if names := [part[1:-1] for part in path.split("/") if part.startswith("{")]:
            paths[path]["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in names
            ]
    return sse.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "treadle", "version": "1"},
            "paths": paths,
            "components": {"schemas": components},
        }
    )


def _operation(told: str, body: Any = None) -> dict[str, Any]:
    error = {"description": "An error in the shape of the API"}
    operation: dict[str, Any] = {
        "summary": told,
        "responses": {"200": {"description": told}, "4XX": error, "5XX": error},
    }
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation
