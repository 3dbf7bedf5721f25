"""Real harness CLIs, unmodified: each in a home of its own, pointed at a server of ours.

They are kept where `TREADLE_HARNESS_TOOLS` says, `<folder>/<name>/node_modules/.bin/<name>`, and
come from npm at their pinned versions the first time they are asked for.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

KEPT = Path(os.environ.get("TREADLE_HARNESS_TOOLS", Path.home() / ".cache" / "harness-tools"))
PACKAGES = {
    "claude": "@anthropic-ai/claude-code@2.1.332",
    "codex": "@openai/codex@0.171.0",
    "opencode": "opencode-ai@1.18.33",
    "qwen": "@qwen-code/qwen-code@0.24.4",
    "openclaw": "openclaw@2026.9.6",
    "node24": "node@24",
}
NEWER_NODE = {"qwen", "openclaw"}
"""They refuse the Node that many machines have: one of their own stands beside them."""

KEY = "dummy-key"
WITHIN = 150.0
INSTALLS_WITHIN = 300.0

Asked = tuple[list[str], dict[str, str]]
"""Arguments after the program's own name, and environment."""


def claude(url: str, home: Path, prompt: str, *more: str) -> Asked:
    """`more` says what it may do, and whether it goes on (`-c`)."""
    arguments = ["-p", prompt, "--model", "lab-model", "--output-format", "stream-json"]
    return [*arguments, "--verbose", *more], {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": KEY,
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }


def claude_with_data(url: str, home: Path, prompt: str) -> Asked:
    """Claude Code with our streaming tools at `/mcp`."""
    headers = {"Authorization": f"Bearer {KEY}"}
    servers = {"data": {"type": "http", "url": f"{url}/mcp", "headers": headers}}
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    may = ("--strict-mcp-config", "--allowedTools", "mcp__data")
    return claude(url, home, prompt, "--mcp-config", str(config), *may)


CODEX = """
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
PROVIDER
"""
CATALOGUE = f'auth = {{ command = "/bin/echo", args = ["{KEY}"] }}'
"""How Codex is told its key so that it asks for the catalogue too."""

NO_CATALOGUE = 'env_key = "LAB_KEY"'
DATA = """
[mcp_servers.data]
url = "URL/mcp"
bearer_token_env_var = "LAB_KEY"
default_tools_approval_mode = "approve"
"""


def codex(
    url: str,
    home: Path,
    prompt: str,
    *resume: str,
    model: str = "lab-model",
    provider: str = NO_CATALOGUE,
) -> Asked:
    """`resume` is ("resume", "--last") to go on with the last session."""
    folder = home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    config = CODEX.replace("MODEL", model).replace("PROVIDER", provider).replace("URL", url)
    (folder / "config.toml").write_text(config)
    where = [] if resume else ["-C", str(home / "work")]
    arguments = ["exec", *resume, "--json", "--skip-git-repo-check", *where, prompt]
    return arguments, {"CODEX_HOME": str(folder), "LAB_KEY": KEY}


def codex_with_data(url: str, home: Path, prompt: str) -> Asked:
    """Codex with our streaming tools at `/mcp`."""
    return codex(url, home, prompt, provider=NO_CATALOGUE + DATA)


WITH_DATA: dict[str, Callable[[str, Path, str], Asked]] = {
    "claude": claude_with_data,
    "codex": codex_with_data,
}


def program(name: str) -> Path:
    """The CLI's program. The test is skipped where there is none and none can be had."""
    for needed in ("node24", name) if name in NEWER_NODE else (name,):
        if not _place(needed).exists() and (reason := installed(needed)):
            pytest.skip(f"no {needed} in {KEPT}: {reason}")
    return _place(name)


def _place(name: str) -> Path:
    return KEPT / name / "node_modules" / ".bin" / ("node" if name == "node24" else name)


@cache
def installed(name: str) -> str:
    """Install a CLI where there is none yet; "" or why it cannot be had."""
    if shutil.which("npm") is None:
        return "npm is not installed, which it comes from"
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _place(name).exists():
            return ""
        ran = subprocess.run(
            [*npm, PACKAGES[name]],
            capture_output=True,
            text=True,
            timeout=INSTALLS_WITHIN,
            check=False,
        )
    return "" if ran.returncode == 0 else f"npm could not install it: {ran.stderr[-300:]}"


def environment(home: Path, own: dict[str, str]) -> dict[str, str]:
    """Nothing of the person's own but the PATH to a Node."""
    path = f"{KEPT / 'node24' / 'node_modules' / '.bin'}:/usr/local/bin:/usr/bin:/bin"
    plain = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb"}
    return plain | {"SHELL": "/bin/bash"} | own


class Started:
    """A CLI that runs, in a group of its own; `stop` is what Ctrl-C does."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    async def said(self, *, within: float = WITHIN) -> str:
        """What it printed, once it has come to its end; past `within` seconds it is ended."""
        try:
            async with asyncio.timeout(within):
                out, _ = await self.process.communicate()
        finally:
            if self.process.returncode is None:
                os.killpg(self.process.pid, signal.SIGKILL)  # the group that we began
                await self.process.wait()
        return out.decode(errors="replace")


async def begin(name: str, home: Path, asked: Asked) -> Started:
    """Start a CLI in `home`, which is made where it is not there."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    arguments, own = asked
    process = await asyncio.create_subprocess_exec(
        str(program(name)),
        *arguments,
        cwd=home / "work",
        env=environment(home, own),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    return Started(name, process)


async def run(name: str, home: Path, asked: Asked, *, good: bool = True) -> str:
    """What a CLI printed; it must come to an end by itself, and a good one unless told."""
    started = await begin(name, home, asked)
    said = await started.said()
    assert (started.process.returncode == 0) is good, said[-3000:]
    return said
