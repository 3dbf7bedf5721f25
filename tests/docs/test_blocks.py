"""Every block that can be typed, saved or run is: against a server in this process.

What cannot be run here stands in `NOT_HERE` with its reason; a block that is neither fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

from cli.configs import BUILDERS, MODELS, TOOLS, problems
from tests.docs.pages import ROOT, Block, blocks, commands, of
from tests.serving.keyed import ADMIN, keyed, make
from tests.serving.server import Server, serving, settings
from toolruns.predicate.parse import parse

HERE = "http://127.0.0.1:8000"
NOT_HERE = {
    "./run": "makes an environment and stays; tests/scripts and scripts/strangers-run do it",
    "./test": "it is what runs these tests",
    "ray": "makes a cluster of other machines; tests/clusters/test_ray_up.py brings one up",
    "ssh": "needs another machine",
}
"""Commands that are not run, and why. All else of their block is."""
ELSEWHERE = {
    ("add-a-family", "python"): "tests/families/test_add_a_family.py",
    ("add-a-family", "toml"): "tests/families/test_add_a_family.py",
    ("streaming-tools", "python"): "tests/toolruns/test_documented.py",
}
"""Blocks that belong together and are run as a whole by a test of their own."""
REFUSED = {"/v1/models/nope": 404}
"""What a page asks for in order to show how it is refused."""
RUN = {"sh", "python", "yaml", "json", "toml"}

PRELUDE = """\
set -eu -o pipefail
T={url}
curl() {{ command curl -m 30 -w '%{{stderr}}\\nHTTP %{{http_code}} %{{url_effective}}\\n' "$@"; }}
left_out() {{ echo "left out: $*"; }}
"""


class Scene(NamedTuple):
    """A server that a page's commands can ask; `words` of the page stand for others there."""

    server: Server
    words: dict[str, str]


@contextlib.asynccontextmanager
async def plain(_folder: Path, _patch: Any) -> AsyncIterator[Scene]:
    async with serving(settings()) as server:
        yield Scene(server, {})


@contextlib.asynccontextmanager
async def observed(folder: Path, _patch: Any) -> AsyncIterator[Scene]:
    """A turn was asked and written down."""
    written_to = folder / "written"
    async with serving(settings(observe={"turns_folder": str(written_to)})) as server:
        said = {"max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
        answer = await server.http.post("/v1/messages", json={"model": "lab-model"} | said)
        await asyncio.to_thread(server.outside.traces.settled)
        (written,) = written_to.iterdir()
        written.rename(folder / "turns.jsonl")
        yield Scene(server, {"msg_0123456789abcdef": answer.json()["id"]})


@contextlib.asynccontextmanager
async def with_keys(folder: Path, patch: Any) -> AsyncIterator[Scene]:
    """The admin's key is ours, and there is a key to revoke."""
    async with keyed(patch, access={"audit_file": str(folder / "audit")}) as server:
        made = await make(server, "acme")
        yield Scene(server, {"$(openssl rand -hex 32)": ADMIN, "0123456789ab": made["id"]})


SCENES = {"observability": observed, "threat-model": with_keys}


def test_every_block_is_run_or_has_a_reason() -> None:
    strange = [block.name for block in blocks() if block.kind not in RUN]
    assert strange == []
    for (page, _), test in ELSEWHERE.items():
        assert f"{page}.md" in (ROOT / test).read_text()
    typed = {words[0] for block in blocks() if block.kind == "sh" for words in commands(block.body)}
    assert NOT_HERE.keys() <= typed, "a reason for a command that no page has"


def desk(folder: Path) -> dict[str, str]:
    """A folder as a checkout is seen from it, and a harness's place taken by a program that ends."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)
    (folder / "bin").mkdir()
    claude = folder / "bin" / "claude"
    claude.write_text('#!/bin/sh\necho "claude at $ANTHROPIC_BASE_URL: $*"\n')
    claude.chmod(0o700)
    path = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "HOME": str(folder),
        "TREADLE_PYTHON": sys.executable,
    }


def script(body: str, scene: Scene) -> str:
    for before, after in {HERE: scene.server.url, **scene.words}.items():
        body = body.replace(before, after)
    for command in NOT_HERE:
        body = re.sub(
            rf"^{re.escape(command)}(?= |$)", f"left_out {command}", body, flags=re.MULTILINE
        )
    return PRELUDE.format(url=scene.server.url) + body


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
@pytest.mark.parametrize("block", of("sh"))
async def test_a_shell_runs_the_block(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SCENES.get(block.page, plain)(tmp_path, monkeypatch) as scene:
        env = desk(tmp_path) | {"TREADLE_URL": scene.server.url}
        shell = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            script(block.body, scene),
            cwd=tmp_path,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(shell.communicate(), 120)
        figures = scene.server.metrics.render().decode()
    said = out.decode()
    assert shell.returncode == 0, said
    for status, url in re.findall(r"^HTTP (\d+) (\S+)", said, re.MULTILINE):
        path = "/" + url.split("/", 3)[3]
        assert int(status) == REFUSED.get(path, 200), said
    if block.page == "hints":
        assert "treadle_ignored_total{" not in figures


@pytest.mark.parametrize("block", [p for p in of("python") if p.values[0][:2] not in ELSEWHERE])
async def test_python_of_a_page_runs(block: Block) -> None:
    out = io.StringIO()
    async with serving(settings()) as server:
        code = compile(block.body.replace(HERE, server.url), block.name, "exec")
        with contextlib.redirect_stdout(out):
            await asyncio.to_thread(exec, code, {})
    said = out.getvalue().splitlines()
    assert said
    assert all(line.strip() for line in (said[0], said[-1]))


def test_predicates_of_the_page_are_read() -> None:
    pytest.importorskip("pyarrow", reason="the extra `tools` is not installed")
    page = (ROOT / "docs/streaming-tools.md").read_text()
    section = page.split("## consume_until")[1].split("\n## ")[0]
    lines = re.findall(r"^ {4}(\S.*)$", section, re.MULTILINE)
    assert lines
    for line in lines:
        parse(line)


@pytest.mark.parametrize("block", of("yaml"))
def test_settings_of_a_page_are_settings(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `treadle check` sees them, the rest of the config being as it always is."""
    pytest.importorskip("pyarrow", reason="the extra `tools` is not installed")
    monkeypatch.setenv("SHOP_DSN", "postgresql://nobody@127.0.0.1:9/shop")
    said = yaml.safe_load(block.body)
    builder = MODELS if "args" in said else TOOLS
    args = said.get("args", said)
    if builder == MODELS:
        args = {"models": [{"name": "lab-model", "family": "qwen3"}]} | args
    assert builder in BUILDERS
    application = {"name": "a", "route_prefix": "/", "import_path": builder, "args": args}
    config = tmp_path / "config.yaml"
    http = {"host": "127.0.0.1"}
    config.write_text(yaml.safe_dump({"http_options": http, "applications": [application]}))
    wrong = [one for one in problems(config) if not one.message.startswith("there is no folder")]
    assert wrong == []


async def test_a_harness_reaches_the_tools_as_the_page_says(tmp_path: Path) -> None:
    """`.mcp.json` and Codex's TOML: their address and their key list the gateway's tools."""
    pytest.importorskip("mcp", reason="the extra `tools` is not installed")
    from tests.serving.shops import KEY, shop  # noqa: PLC0415 - the extra

    of_page = [block for block in blocks() if block.page == "streaming-tools"]
    claude = json.loads(next(b.body for b in of_page if b.kind == "json"))["mcpServers"]["data"]
    codex = tomllib.loads(next(b.body for b in of_page if b.kind == "toml"))["mcp_servers"]["data"]
    assert claude["type"] == "http"
    keys = [claude["headers"]["Authorization"], f"Bearer ${{{codex['bearer_token_env_var']}}}"]
    assert keys == ["Bearer ${KEY}"] * 2
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with shop(tmp_path) as here, httpx.AsyncClient() as http:
        for server, key in zip((claude, codex), keys, strict=True):
            url = server["url"].replace(f"{HERE}/mcp", here.url)
            headers = {"authorization": key.replace("${KEY}", KEY)}
            headers["accept"] = "application/json, text/event-stream"
            answer = await http.post(url, json=asked, headers=headers)
            assert answer.status_code == 200, answer.text
            assert "stream_rows" in answer.text


async def test_a_request_of_the_page_runs_its_tools(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the extra `tools` is not installed")
    from tests.serving.shops import KEY, shop  # noqa: PLC0415 - the extra

    _, block = (b for b in blocks() if (b.page, b.kind) == ("streaming-tools", "json"))
    body = json.loads(block.body)
    (tool,) = body["tools"]
    async with shop(tmp_path) as here:
        tool["server_url"] = tool["server_url"].replace(f"{HERE}/mcp", here.url)
        tool |= {"server_label": "shop", "allowed_tools": ["orders"]}  # as that gateway has them
        asked = body | {"input": "Please stop early"}
        headers = {"authorization": f"Bearer {KEY}"}
        answer = await here.server.http.post("/v1/responses", json=asked, headers=headers)
    assert answer.status_code == 200, answer.text
    assert "mcp_call" in [item["type"] for item in answer.json()["output"]]


async def test_codex_finds_what_its_config_of_the_page_names() -> None:
    """Its catalogue, asked with the key that its command prints."""
    (block,) = (b for b in blocks() if (b.page, b.kind) == ("apis", "toml"))
    config = tomllib.loads(block.body)
    provider = config["model_providers"][config["model_provider"]]
    assert (provider["wire_api"], provider["supports_websockets"]) == ("responses", True)
    auth = provider["auth"]
    asking = await asyncio.create_subprocess_exec(
        auth["command"], *auth["args"], stdout=asyncio.subprocess.PIPE
    )
    key, _ = await asking.communicate()
    async with serving(settings(model={"name": config["model"]})) as server:
        url = provider["base_url"].replace(HERE, server.url) + "/models"
        headers = {"authorization": f"Bearer {key.decode().strip()}"}
        answer = await server.http.get(url, headers=headers, params={"client_version": "0.171.0"})
    assert config["model"] in [model["slug"] for model in answer.json()["models"]]


def test_every_json_and_toml_block_is_one_of_these() -> None:
    places = [(b.page, b.kind) for b in blocks() if b.kind in {"json", "toml"}]
    assert sorted(place for place in places if place not in ELSEWHERE) == [
        ("apis", "toml"),
        ("streaming-tools", "json"),
        ("streaming-tools", "json"),
        ("streaming-tools", "toml"),
    ]
