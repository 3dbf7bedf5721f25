"""How tools look to a client. The order never changes: it stands at the head of cached prompts."""

from __future__ import annotations

from typing import Any

import mcp_types as types

from toolruns.contract import META
from toolruns.tool import Tool

LONGEST = 1800
"""Characters of a description; clients cut longer ones (2,048 in some)."""

_HANDLE = {"type": "string", "description": "The trj_… handle of a streaming tool's result."}
_UNTIL = {
    "type": "string",
    "maxLength": 1024,
    "description": "A new stop condition, over all rows.",
}
_ROWS = {"type": "integer", "minimum": 1, "description": "Read at most this many more rows."}
_SECONDS = {"type": "number", "exclusiveMinimum": 0, "description": "Read at most this long."}


def _schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


FIXED: dict[str, tuple[str, dict[str, Any]]] = {
    "stream_close": (
        "End a stream and forget its rows. The handle is gone afterwards.",
        _schema(["handle"], handle=_HANDLE),
    ),
    "stream_continue": (
        (
            "Read on in a stream whose result said PARTIAL (yielded). Returns the next synopsis. A "
            "yielded stream is held for about a minute, then it ends by itself."
        ),
        _schema(
            ["handle"],
            handle=_HANDLE,
            consume_until=_UNTIL,
            max_rows=_ROWS,
            max_seconds=_SECONDS,
            checkpoint={"type": "boolean", "description": "Return at the next synopsis."},
        ),
    ),
    "stream_plan": (
        (
            "Run up to 8 streaming calls as one graph, each with its own consume_until; what can "
            "run together does, under one time budget. An argument may be taken from another node: "
            '{"$from": "orders", "column": "user_id"} (take: values, first, count, min, max). '
            "Returns a synopsis and a handle for every node."
        ),
        _schema(
            ["nodes"],
            nodes={
                "type": "array",
                "minItems": 1,
                "maxItems": 8,
                "items": _schema(
                    ["id", "tool"],
                    id={"type": "string"},
                    tool={"type": "string", "description": "Name of a streaming tool."},
                    arguments={"type": "object"},
                    after={"type": "array", "items": {"type": "string"}},
                ),
            },
            max_seconds=_SECONDS,
        ),
    ),
    "stream_query": (
        (
            "Run one SQL SELECT (DuckDB) over the rows kept under a handle, as table `rows`. At "
            "most 50 rows and 8 KB come back, so aggregate: look into what a synopsis sums up."
        ),
        _schema(
            ["handle", "sql"],
            handle=_HANDLE,
            sql={"type": "string", "maxLength": 4096, "description": "One SELECT over rows."},
        ),
    ),
    "stream_rows": (
        "Show rows kept under a handle: filtered, ordered, paged. At most 50 rows and 8 KB.",
        _schema(
            ["handle"],
            handle=_HANDLE,
            where={"type": "string", "description": "SQL condition, e.g. status = 'error'."},
            columns={"type": "array", "items": {"type": "string"}},
            order_by={"type": "string", "description": "A column, optionally followed by desc."},
            offset={"type": "integer", "minimum": 0},
            limit={"type": "integer", "minimum": 1, "maximum": 50},
        ),
    ),
}
"""The tools that every gateway has: name to description and schema."""


def listed(tools: list[Tool], *, always_load: bool = True) -> list[types.Tool]:
    """All tools, ours last, each by name. `always_load` keeps Claude Code from deferring them."""
    load = {"anthropic/alwaysLoad": True} if always_load else {}
    streaming = [
        types.Tool(
            name=tool.name,
            description=described(tool),
            input_schema=tool.schema(),
            annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
            _meta={META: tool.contract.to_meta(), **load},
        )
        for tool in sorted(tools, key=lambda tool: tool.name)
    ]
    fixed = [
        types.Tool(
            name=name,
            description=description,
            input_schema=schema,
            annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
            _meta=dict(load) or None,
        )
        for name, (description, schema) in FIXED.items()
    ]
    return [*streaming, *fixed]


def described(tool: Tool) -> str:
    """The description as the model reads it: what it is, what comes back, how long it is kept."""
    minutes = max(1, round(tool.contract.handle_ttl_seconds / 60))
    head = f"STREAMING ({tool.contract.mode}): returns a synopsis and a handle, not all rows. "
    tail = (
        " Set consume_until to stop as soon as you have seen enough. The first line says COMPLETE "
        f"or PARTIAL and why. Rows stay readable by handle for {minutes} minutes after each use "
        "(stream_rows, stream_query)."
    )
    room = LONGEST - len(head) - len(tail)
    text = tool.description
    return f"{head}{text if len(text) <= room else text[: room - 1] + '…'}{tail}"
