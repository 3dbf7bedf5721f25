from __future__ import annotations

from typing import Any

import pytest

from parsers.schema import Kinds, Schemas, worded
from turns.turn import Tool

STRING, INTEGER, NUMBER = Kinds.STRING, Kinds.INTEGER, Kinds.NUMBER | Kinds.INTEGER
NULL, OBJECT, ARRAY, BOOLEAN = Kinds.NULL, Kinds.OBJECT, Kinds.ARRAY, Kinds.BOOLEAN
LOOP: dict[str, Any] = {"$ref": "#/$defs/loop"}


def kinds(value: Any, **root: Any) -> Kinds:
    tool = Tool("f", parameters={"type": "object", "properties": {"x": value}, **root})
    return Schemas((tool,)).kinds("f", "x")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"type": "integer"}, INTEGER, id="plain"),
        pytest.param({"type": "number"}, NUMBER, id="a-number-may-be-an-integer"),
        pytest.param({"type": ["integer", "null"]}, INTEGER | NULL, id="list"),
        pytest.param({"type": "integer", "nullable": True}, INTEGER | NULL, id="nullable"),
        pytest.param({"anyOf": [{"type": "string"}, {"type": "array"}]}, STRING | ARRAY, id="any-of"),
        pytest.param({"oneOf": [{"type": "object"}, {"type": "null"}]}, OBJECT | NULL, id="one-of"),
        pytest.param({"allOf": [{"description": "d"}, {"type": "boolean"}]}, BOOLEAN, id="all-of"),
        pytest.param({"enum": ["a", 1, None]}, STRING | INTEGER | NULL, id="enum"),
        pytest.param({"const": 1.5}, Kinds.NUMBER, id="const"),
        pytest.param({"properties": {}}, OBJECT, id="properties-without-type"),
        pytest.param({"items": {}}, ARRAY, id="items-without-type"),
        pytest.param({}, STRING, id="nothing"),
        pytest.param({"type": "widget"}, STRING, id="unknown-word"),
        pytest.param({"$ref": "https://example.com/x.json"}, STRING, id="foreign-reference"),
        pytest.param({"$ref": "#/$defs/none"}, STRING, id="dangling-reference"),
        pytest.param(LOOP, STRING, id="loop"),
        pytest.param("no schema", STRING, id="no-mapping"),
        pytest.param({"anyOf": "no list"}, STRING, id="no-list"),
    ],
)  # fmt: skip
def test_what_a_schema_admits(schema: Any, expected: Kinds) -> None:
    assert kinds(schema, **{"$defs": {"loop": LOOP}}) == expected


def test_a_reference_is_followed() -> None:
    assert kinds({"$ref": "#/$defs/a~1b"}, **{"$defs": {"a/b": {"type": "array"}}}) == ARRAY


def test_properties_are_found_behind_references_and_unions() -> None:
    inner = {"properties": {"x": {"type": "integer"}}}
    for parameters in (
        {"$ref": "#/$defs/p", "$defs": {"p": inner}},
        {"anyOf": [{"properties": {}}, inner]},
        {"properties": {}, "additionalProperties": {"type": "integer"}},
    ):
        assert Schemas((Tool("f", parameters=parameters),)).kinds("f", "x") == INTEGER


def test_a_tool_or_key_that_nobody_declared_takes_strings() -> None:
    schemas = Schemas((Tool("f"),))
    assert schemas.kinds("f", "x") == schemas.kinds("g", "x") == STRING
    assert not schemas.has("f", "x")
    assert not schemas.declares("g")


@pytest.mark.parametrize(
    ("word", "kind"), [("true", STRING), ("string", STRING), ("integer", INTEGER), ("?", STRING)]
)
def test_types_written_on_the_wire(word: str, kind: Kinds) -> None:
    assert worded(word) == kind


def test_not_a_string_on_the_wire_is_anything_else() -> None:
    assert STRING not in worded("false")
    assert OBJECT | ARRAY | NULL | NUMBER | BOOLEAN in worded("false")
