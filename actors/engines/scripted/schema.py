"""The smallest value that a JSON schema admits, for tools that nothing is known about."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Wish = Callable[[str, dict[str, Any]], Any]
"""What a property of this name should hold, by its schema; `NOTHING` leaves it to the schema."""

NOTHING: Any = object()
DEPTH = 12  # a schema that refers to itself is cut off here
FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "someone@example.invalid",
    "uri": "https://example.invalid/",
    "url": "https://example.invalid/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
}


def no_wish(_name: str, _schema: dict[str, Any]) -> Any:
    return NOTHING


def smallest(schema: Any, wish: Wish = no_wish) -> Any:
    """A value for `schema`: required properties, and those that `wish` has a value for.

    Patterns and conditional keywords are not solved; everything else common in tool schemas is.
    """
    return _value(schema, schema, wish, DEPTH)


def kind_of(schema: Any) -> str:
    """The type that a value for `schema` will have; "string" when it says nothing."""
    if not isinstance(schema, dict):
        return "string"
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _value(schema: Any, root: Any, wish: Wish, depth: int) -> Any:
    if not isinstance(schema, dict) or depth < 0:
        return "scripted" if schema is not False and depth >= 0 else None
    schema = _resolved(schema, root)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("examples"):
        return schema["examples"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            options = [one for one in schema[key] if kind_of(one) != "null"]
            return _value((options or schema[key])[0], root, wish, depth - 1)
    match kind_of(schema):
        case "object":
            return _object(schema, root, wish, depth)
        case "array":
            count = schema.get("minItems", 0)
            return [_value(schema.get("items", {}), root, wish, depth - 1) for _ in range(count)]
        case "integer" | "number" as kind:
            return _number(schema, whole=kind == "integer")
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return _string(schema)


def _resolved(schema: dict[str, Any], root: Any) -> dict[str, Any]:
    """The schema with its `$ref` followed and its `allOf` merged."""
    for _ in range(DEPTH):
        target = schema.get("$ref")
        if not isinstance(target, str) or not target.startswith("#/"):
            break
        found: Any = root
        for part in target[2:].split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~"), {})
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    for part in schema.get("allOf", ()):
        inner = _resolved(part, root)
        merged = {**schema.get("properties", {}), **inner.get("properties", {})}
        required = [*schema.get("required", ()), *inner.get("required", ())]
        schema = {**inner, **schema, "properties": merged, "required": required}
    return schema


def _object(schema: dict[str, Any], root: Any, wish: Wish, depth: int) -> dict[str, Any]:
    required = schema.get("required", ())
    out = {}
    for name, inner in schema.get("properties", {}).items():
        wished = wish(name, _resolved(inner, root) if isinstance(inner, dict) else {})
        if wished is not NOTHING:
            out[name] = wished
        elif name in required:
            out[name] = _value(inner, root, wish, depth - 1)
    for name in required:
        out.setdefault(name, "scripted")
    return out


def _number(schema: dict[str, Any], *, whole: bool) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    value = 1
    if low is not None and value <= low:
        value = math.floor(low) + 1 if low != schema.get("minimum") or low % 1 else low
    if high is not None and value >= high:
        value = math.ceil(high) - 1 if high != schema.get("maximum") or high % 1 else high
    step = schema.get("multipleOf")
    if step:
        value = math.ceil(value / step) * step
    return int(value) if whole else value


def _string(schema: dict[str, Any]) -> str:
    text = FORMATS.get(schema.get("format", ""), "scripted")
    text = text.ljust(schema.get("minLength", 0), "x")
    return text[: schema.get("maxLength", len(text))]
