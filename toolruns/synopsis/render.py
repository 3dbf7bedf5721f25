"""The synopsis as the model reads it: one word, one handle, one line of JSON, at most 2 KB."""

from __future__ import annotations

import json
import math
from typing import Any

from msgspec import Struct

MAX_BYTES = 2048


class Level(Struct, frozen=True):
    """How much is shown: rows of the head and the sample, columns, top values, letters a value."""

    head: int
    sample: int
    columns: int
    top: int
    letters: int
    quantiles: bool


LEVELS = (
    Level(3, 2, 64, 5, 60, quantiles=True),
    Level(2, 1, 64, 5, 48, quantiles=True),
    Level(1, 1, 64, 3, 32, quantiles=True),
    Level(1, 0, 32, 3, 24, quantiles=False),
    Level(1, 0, 16, 2, 16, quantiles=False),
    Level(0, 0, 12, 1, 16, quantiles=False),
    Level(0, 0, 6, 0, 12, quantiles=False),
    Level(0, 0, 0, 0, 12, quantiles=False),
)
"""From the most generous to the barest; the first that fits is taken."""

ALWAYS = ("status", "reason", "rows", "chunks", "elapsed_s")
"""Keys of the snapshot that are shown even where nothing else fits."""


def render(lines: list[str], snapshot: dict[str, Any], max_bytes: int = MAX_BYTES) -> str:
    """The lines, then the snapshot as compact JSON, together at most `max_bytes` of UTF-8."""
    head = "\n".join(lines)
    room = max_bytes - len(head.encode()) - 1
    for level in LEVELS:
        body = _dump(shrink(snapshot, level))
        if len(body.encode()) <= room:
            return f"{head}\n{body}"
    body = _dump({key: snapshot[key] for key in ALWAYS if key in snapshot})
    if len(body.encode()) <= room:
        return f"{head}\n{body}"
    return head.encode()[:max_bytes].decode(errors="ignore")


def shrink(snapshot: dict[str, Any], level: Level) -> dict[str, Any]:
    """The snapshot with what `level` has no room for left out, and said to be."""
    shown = {key: value for key, value in snapshot.items() if value not in (None, [], {}, "")}
    columns = snapshot.get("columns", [])
    shown["columns"] = [_column(column, level) for column in columns[: level.columns]]
    if len(columns) > level.columns:
        shown["columns_not_shown"] = len(columns) - level.columns
    for key, count in (("head", level.head), ("sample", level.sample)):
        rows = snapshot.get(key, [])[:count]
        if rows:
            shown[key] = [_row(row, level) for row in rows]
        else:
            shown.pop(key, None)
    if "notes" in shown:
        shown["notes"] = [short(note, 120) for note in snapshot["notes"][:4]]
    return shown


def _row(row: dict[str, Any], level: Level) -> dict[str, Any]:
    names = list(row)[: level.columns]
    return {short(name, 40): short(row[name], level.letters) for name in names}


def _column(column: dict[str, Any], level: Level) -> dict[str, Any]:
    shown = {k: short(v, level.letters) for k, v in column.items() if k not in {"top", "quantiles"}}
    top = column.get("top", [])[: level.top]
    if top:
        shown["top"] = [[short(value, level.letters), count] for value, count in top]
    if level.quantiles and column.get("quantiles"):
        shown["quantiles"] = {k: short(v, 0) for k, v in column["quantiles"].items()}
    return shown


def short(value: Any, letters: int) -> Any:
    """A value fit for a synopsis: long texts end in …, floats have six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    if isinstance(value, str) and letters and len(value) > letters:
        return f"{value[:letters]}…"
    if isinstance(value, dict | list):
        return short(_dump(value), letters)
    return value


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
