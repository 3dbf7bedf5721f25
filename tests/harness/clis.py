"""Real harness CLIs, unmodified: each in a home of its own, pointed at a server of ours.

They are looked for where `TREADLE_HARNESS_TOOLS` says: `<folder>/<name>/node_modules/.bin/<name>`,
with a Node of their own in `<folder>/node24`, if there is one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

KEPT = Path(os.environ.get("TREADLE_HARNESS_TOOLS", Path.home() / ".cache" / "harness-tools"))
PACKAGES = {"claude": "@anthropic-ai/claude-code@2.1.332", "codex": "@openai/codex@0.171.0"}
KEY = "dummy-key"
WITHIN = 150

Asked = tuple[list[str], dict[str, str]]
"""Arguments after the program's own name, and environment."""


def claude(url: str, home: Path, prompt: str) -> Asked:
    servers = {
        "data": {
            "type": "http",
            "url": f"{url}/mcp",
            "headers": {"Authorization": f"Bearer {KEY}"},
        }
    }
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    arguments = ["-p", prompt, "--model", "lab-model", "--output-format", "stream-json"]
    arguments += ["--verbose", "--mcp-config", str(config), "--strict-mcp-config"]
    arguments += ["--allowedTools", "mcp__data"]
    return arguments, {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_AUTH_TOKEN": KEY,
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }


CODEX = """
model = "lab-model"
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
env_key = "LAB_KEY"

[mcp_servers.data]
url = "URL/mcp"
bearer_token_env_var = "LAB_KEY"
default_tools_approval_mode = "approve"
"""


def codex(url: str, home: Path, prompt: str) -> Asked:
    folder = home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(CODEX.replace("URL", url))
    arguments = ["exec", "--json", "--skip-git-repo-check", "-C", str(home / "work"), prompt]
    return arguments, {"CODEX_HOME": str(folder), "LAB_KEY": KEY}


CLIS: dict[str, Callable[[str, Path, str], Asked]] = {"claude": claude, "codex": codex}


def program(name: str) -> Path:
    """The CLI's program; the test is skipped where it is not installed."""
    found = KEPT / name / "node_modules" / ".bin" / name
    if not found.exists():
        pytest.skip(f"no {name}: npm install --prefix {KEPT / name} {PACKAGES.get(name, name)}")
    return found


def run(name: str, url: str, home: Path, prompt: str) -> str:
    """What the CLI printed; it must come to an end by itself, and a good one."""
    command = [str(program(name))]
    (home / "work").mkdir()
    arguments, own = CLIS[name](url, home, prompt)
    path = f"{KEPT / 'node24' / 'node_modules' / '.bin'}:/usr/local/bin:/usr/bin:/bin"
    environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", **own}
    errors = home / "stderr"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            command + arguments,
            cwd=home / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=WITHIN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the group that we began
            said, _ = process.communicate()
            pytest.fail(f"{name} took over {WITHIN} s; it said {said[-2000:]}")
    assert process.returncode == 0, f"{said[-2000:]}\n{errors.read_text()[-2000:]}"
    return said
