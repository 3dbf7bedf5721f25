"""The contract of a streaming tool: what it promises, in the words of `_meta`.

A contract says in what pieces a tool delivers (`mode`), what one piece holds (`unit`), which
columns tell whether the stream still brings news (`key`), and what happens when nobody says when
to stop (`defaults`). It is data: the machine reads it, the gateway publishes it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct, field

EXTENSION = "dev.treadle/streaming-tools"
META = "dev.treadle/streaming"
TRAJECTORY_META = "dev.treadle/trajectory"
BUDGET_META = "dev.treadle/budget"
"""What a caller says that it has left: `{seconds, context, tokens, furtherCalls, concurrent}`."""
SYNOPSES_META = "dev.treadle/synopses"
"""A caller that sets it is told whole synopses as progress, not lines for a person."""

Mode = Literal["request_response", "chunked", "paginated", "unbounded"]
Unit = Literal["row", "page", "hit", "line", "record"]
Ordering = Literal["none", "key_asc", "time_asc", "score_desc"]

MODES: tuple[Mode, ...] = ("request_response", "chunked", "paginated", "unbounded")


class Column(Struct, frozen=True, omit_defaults=True):
    """A column that the tool is known to bring. `key` columns carry the stream's verdict."""

    name: str
    type: str = ""
    key: bool = False
    score: bool = False


class Cadence(Struct, frozen=True, rename="camel"):
    """How often a running synopsis is shown, and how large it may be (bytes of UTF-8)."""

    every_chunks: int = 8
    every_seconds: float = 2.0
    max_bytes: int = 2048


class Defaults(Struct, frozen=True, rename="camel"):
    """Limits that hold when the caller names none. Seconds are of wall clock."""

    max_rows: int = 100_000
    max_seconds: float = 20.0
    max_bytes: int = 256 * 1024 * 1024
    max_tokens: int = 8_000
    idle_seconds: float = 15.0
    yield_after_seconds: float = 10.0


class Contract(Struct, frozen=True, rename="camel"):
    """What a streaming tool promises. Published as `_meta["dev.treadle/streaming"]`."""

    mode: Mode
    unit: Unit = "row"
    ordering: Ordering = "none"
    columns: tuple[Column, ...] = ()
    resumable: bool = False
    synopsis: Cadence = field(default_factory=Cadence)
    defaults: Defaults = field(default_factory=Defaults)
    handle_ttl_seconds: float = 900.0
    version: int = 1

    def keys(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.key)

    def score(self) -> str:
        """The column that holds a hit's score, or ""."""
        return next((column.name for column in self.columns if column.score), "")

    def to_meta(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built


ARGUMENTS: dict[str, dict[str, Any]] = {
    "consume_until": {
        "type": "string",
        "maxLength": 1024,
        "description": (
            'Stop the stream as soon as this holds, e.g. "count >= 30 AND distinct(user_id) >= 10" '
            "or \"any(level = 'ERROR')\". Aggregates: count, distinct, min, max, sum, avg, any, "
            "count_if, seconds, bytes, converged(column)."
        ),
    },
    "max_rows": {"type": "integer", "minimum": 1, "description": "Read at most this many rows."},
    "max_seconds": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Read for at most this many seconds.",
    },
    "checkpoint": {
        "type": "boolean",
        "description": "Return at the first synopsis and wait; go on with stream_continue.",
    },
    "supersedes": {
        "type": "string",
        "description": "Handle of an earlier call that this narrower one replaces: it is ended.",
    },
}
"""The JSON schemas of the arguments that every streaming tool takes beside its own."""
