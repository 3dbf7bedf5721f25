"""What a tool's JSON schema says an argument may be. A schema that says nothing means a string.

Only types matter here. References, unions, intersections, type lists, `nullable`, enums and
constants are followed; what cannot be resolved degrades to a string, never to an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntFlag
from typing import Any

from turns.turn import Tool


class Kinds(IntFlag):
    """The JSON types that a value may have."""

    NONE = 0
    STRING = 1
    INTEGER = 2
    NUMBER = 4
    BOOLEAN = 8
    NULL = 16
    OBJECT = 32
    ARRAY = 64


_NAMES = {
    "string": Kinds.STRING,
    "integer": Kinds.INTEGER,
    "number": Kinds.NUMBER | Kinds.INTEGER,
    "boolean": Kinds.BOOLEAN,
    "null": Kinds.NULL,
    "object": Kinds.OBJECT,
    "array": Kinds.ARRAY,
    # words that models of other ecosystems put into schemas, and harnesses pass on
    "str": Kinds.STRING,
    "int": Kinds.INTEGER,
    "float": Kinds.NUMBER | Kinds.INTEGER,
    "bool": Kinds.BOOLEAN,
    "dict": Kinds.OBJECT,
    "list": Kinds.ARRAY,
}
_DEPTH = 16


class Schemas:
    """The parameters of a turn's tools, resolved on demand and remembered."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._known: dict[tuple[str, str], Kinds] = {}

    def declares(self, name: str) -> bool:
        return name in self._tools

    def has(self, name: str, key: str) -> bool:
        """Whether the tool declares an argument of that name."""
        tool = self._tools.get(name)
        root = tool.parameters if tool else {}
        return _property(root, key, root, _DEPTH) is not None

    def kinds(self, name: str, key: str) -> Kinds:
        """What the argument `key` of the tool `name` may be; STRING when nobody says."""
        known = self._known.get((name, key))
        if known is None:
            tool = self._tools.get(name)
            root = tool.parameters if tool else {}
            known = _of(_property(root, key, root, _DEPTH), root, _DEPTH) or Kinds.STRING
            self._known[name, key] = known
        return known


def worded(word: str) -> Kinds:
    """What a type written on the wire means: a type's name, or whether it is a string."""
    if word == "true":
        return Kinds.STRING
    if word == "false":
        return ~Kinds.STRING
    return _NAMES.get(word, Kinds.STRING)


def _property(schema: Any, key: str, root: Mapping[str, Any], depth: int) -> Any:
    """The schema of one property, also behind references and inside unions of objects."""
    if not isinstance(schema, Mapping) or depth == 0:
        return None
    if "$ref" in schema:
        return _property(_resolve(schema["$ref"], root), key, root, depth - 1)
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and key in properties:
        return properties[key]
    for word in ("allOf", "anyOf", "oneOf"):
        for part in _list(schema.get(word)):
            found = _property(part, key, root, depth - 1)
            if found is not None:
                return found
    extra = schema.get("additionalProperties")
    return extra if isinstance(extra, Mapping) else None


def _of(schema: Any, root: Mapping[str, Any], depth: int) -> Kinds:
    """The kinds that a schema admits; NONE when it does not say."""
    if not isinstance(schema, Mapping) or depth == 0:
        return Kinds.NONE
    kinds = Kinds.NONE
    if "$ref" in schema:
        kinds = _of(_resolve(schema["$ref"], root), root, depth - 1)
    declared = schema.get("type")
    for word in declared if isinstance(declared, list) else [declared]:
        if isinstance(word, str):
            kinds |= _NAMES.get(word.lower(), Kinds.NONE)
    if not kinds:
        kinds = _nested(schema, root, depth)
    if schema.get("nullable") is True:
        kinds |= Kinds.NULL
    return kinds


def _nested(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Kinds:
    kinds = Kinds.NONE
    for word in ("anyOf", "oneOf"):
        for part in _list(schema.get(word)):
            kinds |= _of(part, root, depth - 1)
    for part in _list(schema.get("allOf")):
        kinds = kinds or _of(part, root, depth - 1)
    if kinds:
        return kinds
    if "enum" in schema:
        for value in _list(schema["enum"]):
            kinds |= _value(value)
    elif "const" in schema:
        kinds = _value(schema["const"])
    elif "properties" in schema:
        kinds = Kinds.OBJECT
    elif "items" in schema or "prefixItems" in schema:
        kinds = Kinds.ARRAY
    return kinds


def _value(value: Any) -> Kinds:
    match value:
        case None:
            return Kinds.NULL
        case bool():
            return Kinds.BOOLEAN
        case int():
            return Kinds.INTEGER
        case float():
            return Kinds.NUMBER
        case str():
            return Kinds.STRING
        case list():
            return Kinds.ARRAY
        case _:
            return Kinds.OBJECT


def _resolve(ref: Any, root: Mapping[str, Any]) -> Any:
    """A reference inside the same schema (`#/$defs/P`); None for any other."""
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    at: Any = root
    for part in ref[1:].split("/"):
        if not part:
            continue
        name = part.replace("~1", "/").replace("~0", "~").replace("%24", "$")
        if isinstance(at, Mapping) and name in at:
            at = at[name]
        elif isinstance(at, list) and name.isdigit() and int(name) < len(at):
            at = at[int(name)]
        else:
            return None
    return at


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
