"""The real Codex against the server in this process: its catalogue and its socket.

An alias is treated as its profile says: the request is the one of the profile's own name, and not
the one of a model that Codex does not know. Over a WebSocket only what is new is sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.clis import KEPT, KEY, program
from tests.serving.server import MODEL, listening, serving, settings

pytestmark = [pytest.mark.harness, pytest.mark.timeout(400)]
ALIAS = "openai/openai/gpt-x"
WITHIN = 90.0
CONFIG = """
model = "MODEL"
model_provider = "lab"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"

[analytics]
enabled = false

[model_providers.lab]
name = "Lab"
base_url = "URL/v1"
wire_api = "responses"
AUTH
"""
CATALOGUE = f'auth = {{ command = "/bin/echo", args = ["{KEY}"] }}'
NO_CATALOGUE = 'env_key = "LAB_KEY"'
IDS = {"prompt_cache_key", "client_metadata", "model"}


class Watched:
    """An ASGI application whose requests are kept as they come."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.url = ""
        self.server: Any = None
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""

        async def hearing() -> Any:
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            whole = message["type"] == "http.request" and not message.get("more_body")
            if whole and scope["path"] == "/v1/responses":
                self.bodies.append(json.loads(body))
            return message

        self.paths.append(f"{scope['type']} {scope['path']}")
        await self.app(scope, hearing, send)


SOCKETS = f"{NO_CATALOGUE}\nsupports_websockets = true"


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[Watched]:
    chosen = settings(
        options=options,
        model={"profile": "agentic"},
        aliases=[{"name": ALIAS, "model": MODEL, "profile": "agentic"}],
    )
    async with serving(chosen) as server:
        if not options:
            server.says({"text": "FINAL-OK"})
        watched = Watched(server.outside.app)
        watched.server = server
        async with listening(watched) as watched.url:
            yield watched


async def run(watched: Watched, home: Path, model: str, provider: str) -> None:
    """Codex to its end, from a home that is always at the same place."""
    shutil.rmtree(home, ignore_errors=True)
    (home / ".codex").mkdir(parents=True)
    (home / "work").mkdir()
    config = CONFIG.replace("MODEL", model).replace("URL", watched.url).replace("AUTH", provider)
    (home / ".codex" / "config.toml").write_text(config)
    path = f"{KEPT / 'node24' / 'node_modules' / '.bin'}:/usr/local/bin:/usr/bin:/bin"
    process = await asyncio.create_subprocess_exec(
        str(program("codex")),
        *("exec", "--json", "--skip-git-repo-check", "-C", str(home / "work"), "Say hello."),
        cwd=home / "work",
        env={
            "HOME": str(home),
            "CODEX_HOME": str(home / ".codex"),
            "PATH": path,
            "LAB_KEY": KEY,
            "TERM": "dumb",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(WITHIN):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)  # the group that we began
            await process.wait()
    assert process.returncode == 0, said[-3000:].decode()
    assert b"FINAL-OK" in said


async def first_request(watched: Watched, home: Path, model: str, provider: str) -> dict[str, Any]:
    """What Codex sends first for this model."""
    before = len(watched.bodies)
    await run(watched, home, model, provider)
    return watched.bodies[before]


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
    program("codex")
    home = tmp_path / "home"
    async with served() as watched:
        own = await first_request(watched, home, MODEL, CATALOGUE)
        assert "http /v1/models" in watched.paths
        alias = await first_request(watched, home, ALIAS, CATALOGUE)
        assert (own["model"], alias["model"]) == (MODEL, ALIAS)
        assert shape(alias) == shape(own)
        fallback = await first_request(watched, home, ALIAS, NO_CATALOGUE)
    tools = {tool.get("name") for tool in own["tools"]}
    assert "apply_patch" in tools
    assert own["reasoning"]["effort"] == "medium"
    assert own["text"]["verbosity"] == "low"
    assert "apply_patch" not in {tool.get("name") for tool in fallback["tools"]}
    assert shape(fallback) != shape(own)
    assert "effort" not in (fallback.get("reasoning") or {})


async def test_codex_keeps_one_socket_and_sends_only_what_is_new(tmp_path: Path) -> None:
    program("codex")
    call = {"tool": "exec_command", "arguments": {"cmd": "echo hi-from-tool"}}
    rules = [{"when": {"tools": True, "step": 0}, "reply": [{"call": call}]}]
    rules += [{"reply": [{"text": "FINAL-OK"}]}]
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump({"rules": rules}))
    async with served(scenario=str(scenario)) as watched:
        engine = watched.server.engine
        await run(watched, tmp_path / "home", MODEL, SOCKETS)
        assert watched.paths.count("websocket /v1/responses") == 1
        assert watched.bodies == []
        warm, first, second = (job.prompt for job in engine.jobs)
        assert second[: len(first)] == first
        assert engine.jobs[0].sampling.max_tokens == 1
        text = watched.server.ingress.models[0].folder.tokenizer.decode(second)
        assert "hi-from-tool" in text
        assert warm
