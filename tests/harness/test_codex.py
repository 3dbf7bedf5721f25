"""The real Codex against the server in this process: its catalogue and its socket.

An alias is treated as its profile says: the request is the one of the profile's own name, and not
the one of a model that Codex does not know. Over a WebSocket only what is new is sent.
"""

from __future__ import annotations

import json
import shutil
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness import clis
from tests.harness.clis import CATALOGUE, NO_CATALOGUE
from tests.harness.watched import Watched, watched
from tests.serving.server import MODEL

pytestmark = [pytest.mark.harness, pytest.mark.timeout(400)]
ALIAS = "openai/openai/gpt-x"
IDS = {"prompt_cache_key", "client_metadata", "model"}
SOCKETS = f"{NO_CATALOGUE}\nsupports_websockets = true"


def served(**options: Any) -> AbstractAsyncContextManager[Watched]:
    """A server that Codex is told of; `options` are the engine's."""
    return watched(
        options=options,
        model={"profile": "agentic"},
        aliases=[{"name": ALIAS, "model": MODEL, "profile": "agentic"}],
    )


async def run(server: Watched, home: Path, model: str, provider: str) -> None:
    """Codex to its end, from a home that is always at the same place."""
    shutil.rmtree(home, ignore_errors=True)
    asked = clis.codex(server.url, home, "Say hello.", model=model, provider=provider)
    assert "FINAL-OK" in await clis.run("codex", home, asked)


async def first_request(server: Watched, home: Path, model: str, provider: str) -> dict[str, Any]:
    """What Codex sends first for this model."""
    before = len(server.seen)
    await run(server, home, model, provider)
    return server.seen[before].body


def shape(body: dict[str, Any]) -> dict[str, Any]:
    """A request without what is new each time: ids, and where it ran."""
    kept = {name: value for name, value in body.items() if name not in IDS}
    kept["tools"] = sorted(json.dumps(tool, sort_keys=True) for tool in body["tools"])
    kept["input"] = [
        (item.get("role"), item["content"][0]["text"] if item["role"] == "developer" else "")
        for item in body["input"]
    ]
    return kept


async def test_an_alias_is_treated_as_its_profile(tmp_path: Path) -> None:
    clis.program("codex")
    home = tmp_path / "home"
    async with served() as server:
        server.server.says({"text": "FINAL-OK"})
        own = await first_request(server, home, MODEL, CATALOGUE)
        assert "http /v1/models" in server.paths
        alias = await first_request(server, home, ALIAS, CATALOGUE)
        assert (own["model"], alias["model"]) == (MODEL, ALIAS)
        assert shape(alias) == shape(own)
        fallback = await first_request(server, home, ALIAS, NO_CATALOGUE)
    tools = {tool.get("name") for tool in own["tools"]}
    assert "apply_patch" in tools
    assert own["reasoning"]["effort"] == "medium"
    assert own["text"]["verbosity"] == "low"
    assert "apply_patch" not in {tool.get("name") for tool in fallback["tools"]}
    assert shape(fallback) != shape(own)
    assert "effort" not in (fallback.get("reasoning") or {})


async def test_codex_keeps_one_socket_and_sends_only_what_is_new(tmp_path: Path) -> None:
    clis.program("codex")
    call = {"tool": "exec_command", "arguments": {"cmd": "echo hi-from-tool"}}
    rules = [{"when": {"tools": True, "step": 0}, "reply": [{"call": call}]}]
    rules += [{"reply": [{"text": "FINAL-OK"}]}]
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump({"rules": rules}))
    async with served(scenario=str(scenario)) as server:
        await run(server, tmp_path / "home", MODEL, SOCKETS)
        assert server.paths.count("websocket /v1/responses") == 1
        assert server.seen == []
        warm, first, second = server.jobs
        server.check_prefix(first, second)
        assert warm.sampling.max_tokens == 1
        assert warm.prompt
        assert "hi-from-tool" in server.text(second)
