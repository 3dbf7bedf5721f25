"""Model lists and look-ups in both shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocols.catalog import Alias, profile, resolve
from protocols.models import ModelCard, etag, listing, lookup
from tests.protocols import apis
from turns.errors import InvalidRequestError, UnknownModelError

CARDS = [
    ModelCard(f"org/model-{letter}", f"Model {letter}", 131_072, 8_192, 1_700_000_000)
    for letter in "abcde"
]
CLAUDE = {"anthropic-version": "2023-06-01"}


def page(**query: str) -> dict[str, Any]:
    return json.loads(listing(CARDS, CLAUDE, query))


def test_openai_list() -> None:
    body = json.loads(listing(CARDS, {}, {}))
    assert body["object"] == "list"
    assert body["data"][0] == {
        "id": "org/model-a",
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "treadle",
        "input_modalities": ["text"],
        "context_window": 131_072,
        "max_output_tokens": 8_192,
    }


def test_anthropic_list_and_lookup_are_one_shape() -> None:
    body = page()
    assert body["data"][1] == json.loads(lookup(CARDS, "org/model-b", CLAUDE))
    assert body["data"][1] == {
        "type": "model",
        "id": "org/model-b",
        "display_name": "Model b",
        "created_at": "2023-11-14T22:13:20Z",
        "capabilities": {"image_input": {"supported": False}},
        "max_input_tokens": 131_072,
        "max_tokens": 8_192,
    }


def test_anthropic_pages_forth_and_back() -> None:
    first = page(limit="2")
    assert [card["id"][-1] for card in first["data"]] == ["a", "b"]
    assert (first["has_more"], first["last_id"]) == (True, "org/model-b")
    last = page(limit="3", after_id=first["last_id"])
    assert [card["id"][-1] for card in last["data"]] == ["c", "d", "e"]
    assert last["has_more"] is False
    back = page(limit="2", before_id="org/model-e")
    assert [card["id"][-1] for card in back["data"]] == ["c", "d"]
    assert back["has_more"] is True


@pytest.mark.parametrize(
    "query",
    [{"limit": "0"}, {"limit": "1001"}, {"limit": "two"}, {"limit": "²"}, {"after_id": "x"}],
    ids=["zero", "large", "word", "superscript", "unknown"],
)
def test_a_bad_page_is_an_invalid_request(query: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError):
        page(**query)


def test_an_unknown_model_names_those_served() -> None:
    with pytest.raises(UnknownModelError, match="org/model-a"):
        lookup(CARDS, "gpt-x", {})


def test_an_empty_fleet_has_an_empty_list() -> None:
    body = json.loads(listing([], CLAUDE, {}))
    assert body == {"data": [], "has_more": False, "first_id": None, "last_id": None}


def test_codex_gets_its_catalogue_beside_the_list() -> None:
    body = listing(CARDS, {}, {"client_version": "0.171.0"})
    models = json.loads(body)["models"]
    assert [model["slug"] for model in models] == [card.id for card in CARDS]
    # What Codex 0.171 demands: one entry without one of these discards the whole catalogue.
    required = {
        "slug",
        "display_name",
        "supported_reasoning_levels",
        "shell_type",
        "visibility",
        "supported_in_api",
        "priority",
        "support_verbosity",
        "truncation_policy",
        "experimental_supported_tools",
        "base_instructions",
    }
    assert all(required <= set(model) for model in models)
    assert json.loads(body)["data"] == json.loads(listing(CARDS, {}, {}))["data"]
    assert etag(body) == etag(listing(CARDS, {}, {"client_version": "0.172.0"}))
    assert etag(body) != etag(listing(CARDS[:1], {}, {"client_version": "0.171.0"}))


def test_the_catalogue_has_every_field_of_the_known_example() -> None:
    path = apis.FIXTURES / "codex-catalog-example.json"
    if not path.exists():
        pytest.skip(f"no fixture at {path}; set TREADLE_FIXTURES")
    example = json.loads(path.read_text())["models"][0]
    ours = json.loads(listing(CARDS, {}, {"client_version": "1"}))["models"][0]
    assert set(example) - set(ours) <= {"web_search_tool_type"}


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"shell": "fish"}, "shell"),
        ({"colour": "blue"}, "colour"),
        ({"default_effort": "extreme"}, "extreme"),
        ({"instructions": " "}, "instructions"),
        ({"truncation": {"mode": "lines"}}, "mode"),
    ],
    ids=["value", "unknown", "effort", "empty", "nested"],
)
def test_a_faulty_profile_says_what_is_wrong(fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=rf"profile 'mine': .*{fault}"):
        profile(fields, "mine")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("served", Alias("served", "served")),
        ("claude-haiku-4-5", Alias("claude-haiku-4-5", "small")),
        ("claude-opus-9", Alias("claude-*", "served", "large")),
        ("openai/openai/gpt-x", Alias("openai/openai/gpt-x", "served", "gpt")),
        ("gpt-x", None),
    ],
)
def test_aliases(name: str, expected: Alias | None) -> None:
    aliases = [
        Alias("claude-*", "served", "large"),
        Alias("claude-haiku-4-5", "small"),
        Alias("openai/openai/gpt-x", "served", "gpt"),
        Alias("served", "small"),
    ]
    assert resolve(name, ["served", "small"], aliases) == expected
