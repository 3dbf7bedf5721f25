"""The models as clients see them: three shapes, aliases, patterns, profiles, ETags."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from deployments import profiles
from tests.serving.asks import PATHS, ask
from tests.serving.server import MODEL, QUICK, Server, serving, settings

ALIASES = [
    {"name": "openai/openai/gpt-x", "model": MODEL, "profile": "agentic"},
    {"name": "claude-haiku-4-5-20251001", "model": MODEL, "profile": "side-calls"},
    {"name": "claude-*", "model": MODEL},
]
CLAUDE = {"anthropic-version": "2023-06-01"}
CODEX = {"client_version": "0.171.0"}


def named() -> Any:
    return settings(aliases=ALIASES, model={"profile": "", "display_name": "Lab Model"})


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("name", ["openai/openai/gpt-x", "claude-opus-5-5", MODEL])
async def test_an_alias_is_answered_by_its_model(api: str, name: str) -> None:
    async with serving(named()) as server:
        answer = await server.http.post(PATHS[api], json=ask(api, model=name))
        assert answer.status_code == 200, answer.text
        assert answer.json()["model"] == name
        figures = (await server.http.get("/metrics")).text
        assert f'treadle_turns_received_total{{api="{api}",model="{MODEL}"}} 1.0' in figures


async def test_the_list_has_every_name_but_patterns() -> None:
    async with serving(named()) as server:
        listed = (await server.http.get("/v1/models")).json()
        assert [model["id"] for model in listed["data"]] == [
            MODEL,
            "openai/openai/gpt-x",
            "claude-haiku-4-5-20251001",
        ]
        assert listed["data"][0]["context_window"] == 131_072
        claude = (await server.http.get("/v1/models", headers=CLAUDE)).json()
        assert claude["data"][0]["type"] == "model"
        assert claude["data"][0]["display_name"] == "Lab Model"


@pytest.mark.parametrize("headers", [{}, CLAUDE])
async def test_a_look_up_knows_patterns_and_slashes(headers: dict[str, str]) -> None:
    async with serving(named()) as server:
        for path in ("openai/openai/gpt-x", "openai%2Fopenai%2Fgpt-x", "claude-opus-5-5"):
            answer = await server.http.get(f"/v1/models/{path}", headers=headers)
            assert answer.status_code == 200
            assert answer.json()["id"] == path.replace("%2F", "/")
        missing = await server.http.get("/v1/models/gpt-9", headers=headers)
        assert missing.status_code == 404
        assert ("request_id" in missing.json()) == bool(headers)


async def test_codex_gets_each_name_with_its_profile() -> None:
    async with serving(named()) as server:
        answer = await server.http.get("/v1/models", params=CODEX)
        models = {model["slug"]: model for model in answer.json()["models"]}
        assert models["openai/openai/gpt-x"]["default_verbosity"] == "low"
        assert models["claude-haiku-4-5-20251001"]["visibility"] == "hide"
        assert models[MODEL]["truncation_policy"] == {"mode": "tokens", "limit": 10_000}
        assert models[MODEL]["context_window"] == 131_072


@pytest.mark.parametrize(("family", "inputs"), [("qwen3", ["text"]), ("gemma4", ["text", "image"])])
async def test_the_catalogue_says_what_a_model_takes(family: str, inputs: list[str]) -> None:
    async with serving(settings(model={"family": family})) as server:
        codex = (await server.http.get("/v1/models", params=CODEX)).json()
        assert codex["models"][0]["input_modalities"] == inputs
        assert codex["data"][0]["input_modalities"] == inputs
        claude = (await server.http.get(f"/v1/models/{MODEL}", headers=CLAUDE)).json()
        assert claude["capabilities"]["image_input"] == {"supported": "image" in inputs}


async def test_a_turn_says_whether_the_catalogue_changed(server: Server) -> None:
    """Codex fetches the catalogue again when the header of a response differs from its ETag."""
    listed = await server.http.get("/v1/models", params=CODEX)
    for stream in (True, False):
        turn = await server.http.post(PATHS["responses"], json=ask("responses", stream=stream))
        assert turn.headers["x-models-etag"] == listed.headers["etag"]
    same = await server.http.get(
        "/v1/models", params=CODEX, headers={"if-none-match": listed.headers["etag"]}
    )
    assert (same.status_code, same.content) == (304, b"")
    async with serving(named()) as other:
        changed = await other.http.get("/v1/models", params=CODEX)
        assert changed.headers["etag"] != listed.headers["etag"]


async def test_every_ingress_says_the_same_etag() -> None:
    tags = set()
    for _ in range(2):
        async with serving(named()) as server:
            tags.add((await server.http.get("/v1/models", params=CODEX)).headers["etag"])
    assert len(tags) == 1


async def test_an_unknown_model_is_refused_by_name(server: Server) -> None:
    for api, path in PATHS.items():
        answer = await server.http.post(path, json=ask(api, model="gpt-9"))
        assert answer.status_code == 404
        assert MODEL in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["default", "agentic", "side-calls"])
def test_a_shipped_profile_can_be_read(name: str) -> None:
    assert profiles.load(name).instructions


def test_the_documented_profile_is_the_default() -> None:
    assert profiles.load("default") == profiles.load("")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"aliases": [{"name": "a", "model": "nope"}]}, "no model is called 'nope'"),
        ({"aliases": [{"name": "a", "model": MODEL, "profile": "x"}]}, "no profile 'x'"),
        ({"aliases": [{"name": MODEL, "model": MODEL}]}, "name of more than one model"),
        ({"aliases": [{"name": "a", "model": MODEL, "profile": "../cpu"}]}, "no profile"),
    ],
)
def test_a_faulty_setting_is_told_before_anything_starts(changes: Any, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        settings(**changes)
    assert settings(model={"engine": {"options": QUICK}})
