"""The OpenAPI document: every path, and schemas that come from what requests are read into."""

from __future__ import annotations

import json

from protocols.counts import COUNTERS
from protocols.openapi import document
from protocols.registry import APIS


def test_it_has_the_paths_of_turns_and_counters() -> None:
    paths = json.loads(document())["paths"]
    assert {api.path for api in APIS.values()} <= set(paths)
    assert set(COUNTERS) <= set(paths)
    for operations in paths.values():
        assert all(
            "200" in one["responses"] for how, one in operations.items() if how != "parameters"
        )


def test_every_reference_leads_somewhere() -> None:
    text = document().decode()
    known = json.loads(text)["components"]["schemas"]
    for part in text.split('"$ref":"#/components/schemas/')[1:]:
        assert part.split('"')[0] in known


def test_it_names_models_as_examples() -> None:
    schemas = json.loads(document(("m",)))["components"]["schemas"]
    shown = [s["properties"]["model"] for s in schemas.values() if "model" in s["properties"]]
    assert shown
    assert all(one == {"type": "string", "examples": ["m"]} for one in shown)
