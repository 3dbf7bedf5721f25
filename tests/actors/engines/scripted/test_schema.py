from __future__ import annotations

from typing import Any

import pytest

from actors.engines.scripted.schema import NOTHING, kind_of, smallest

STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({}, "scripted", id="anything"),
        pytest.param(True, "scripted", id="true"),
        pytest.param(STRING, "scripted", id="string"),
        pytest.param({"type": "string", "minLength": 10}, "scriptedxx", id="min-length"),
        pytest.param({"type": "string", "maxLength": 3}, "scr", id="max-length"),
        pytest.param({"type": "string", "format": "date"}, "2026-01-01", id="format"),
        pytest.param({"type": "integer"}, 1, id="integer"),
        pytest.param({"type": "integer", "minimum": 5}, 5, id="minimum"),
        pytest.param({"type": "integer", "minimum": -3}, 1, id="low-minimum"),
        pytest.param({"type": "integer", "exclusiveMinimum": 5}, 6, id="exclusive-minimum"),
        pytest.param({"type": "integer", "minimum": 4.5}, 5, id="broken-minimum"),
        pytest.param({"type": "integer", "maximum": -2}, -2, id="maximum"),
        pytest.param({"type": "integer", "exclusiveMaximum": 1}, 0, id="exclusive-maximum"),
        pytest.param({"type": "integer", "minimum": 5, "multipleOf": 4}, 8, id="multiple"),
        pytest.param({"type": "number"}, 1, id="number"),
        pytest.param({"type": "boolean"}, False, id="boolean"),
        pytest.param({"type": "null"}, None, id="null"),
        pytest.param({"type": ["null", "integer"]}, 1, id="nullable"),
        pytest.param({"const": 7}, 7, id="const"),
        pytest.param({"enum": ["b", "a"]}, "b", id="enum"),
        pytest.param({"default": [1]}, [1], id="default"),
        pytest.param({"examples": ["e"]}, "e", id="example"),
        pytest.param({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1, id="any-of"),
        pytest.param({"type": "array", "items": STRING}, [], id="array"),
        pytest.param(
            {"type": "array", "minItems": 2, "items": STRING}, ["scripted"] * 2, id="items"
        ),
        pytest.param({"properties": {"a": STRING}}, {}, id="optional"),
        pytest.param(
            {"properties": {"a": STRING}, "required": ["a"]}, {"a": "scripted"}, id="object"
        ),
        pytest.param({"type": "object", "required": ["b"]}, {"b": "scripted"}, id="undeclared"),
        pytest.param(
            {
                "$defs": {"n": {"type": "integer"}},
                "properties": {"a": {"$ref": "#/$defs/n"}},
                "required": ["a"],
            },
            {"a": 1},
            id="ref",
        ),
        pytest.param(
            {
                "allOf": [{"properties": {"a": STRING}, "required": ["a"]}],
                "properties": {"b": STRING},
                "required": ["b"],
            },
            {"a": "scripted", "b": "scripted"},
            id="all-of",
        ),
    ],
)
def test_the_smallest_value(schema: Any, value: Any) -> None:
    assert smallest(schema) == value


def test_a_schema_inside_itself_comes_to_an_end() -> None:
    schema = {"properties": {"child": {"$ref": "#"}}, "required": ["child"]}
    assert "child" in smallest(schema)


def test_a_dangling_reference_is_anything() -> None:
    assert smallest({"$ref": "#/$defs/missing"}) == "scripted"


def test_wishes_come_first_at_every_depth() -> None:
    schema = {"properties": {"in": {"properties": {"a": STRING, "b": STRING}}}, "required": ["in"]}
    assert smallest(schema, lambda name, _: 5 if name == "b" else NOTHING) == {"in": {"b": 5}}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [({"properties": {}}, "object"), ({"items": {}}, "array"), ({}, "string"), (True, "string")],
)
def test_the_kind_of_a_schema_that_does_not_say(schema: Any, kind: str) -> None:
    assert kind_of(schema) == kind
