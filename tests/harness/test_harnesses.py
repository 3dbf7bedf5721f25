"""The real Claude Code and Codex CLIs against the scripted cluster, judged on the wire.

The driver installs the CLIs from npm on its first run (minutes) and runs each with a home of its
own: prompt, reasoning, a tool call that the harness itself executes, its result, a final answer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.served import ROOT, Server, served

pytestmark = [pytest.mark.harness, pytest.mark.timeout(1100)]
DRIVER = Path(
    os.environ.get("TREADLE_HARNESS", ROOT.parent / "shared" / "harness" / "drive.py")
).resolve()
HARNESSES = ["claude", "codex"]
WITHIN = 900.0
"""Seconds for the installation and the runs of all harnesses."""


def why_not() -> str:
    """Why the harnesses cannot be run here; "" when they can."""
    if not DRIVER.is_file():
        return f"no driver at {DRIVER}; set TREADLE_HARNESS to its path"
    if shutil.which("npm") is None:
        return "npm is not installed, which the harness CLIs come from"
    tools = Path(os.environ.get("HARNESS_TOOLS", "~/.cache/harness-tools")).expanduser()
    if all((tools / name / "node_modules" / ".bin" / name).exists() for name in HARNESSES):
        return ""
    asked = subprocess.run(["npm", "view", "npm", "version"], capture_output=True, timeout=60)  # noqa: PLW1510, S607 - the person's own npm
    return "" if asked.returncode == 0 else "npm's registry is out of reach"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if reason := why_not():
        pytest.skip(reason)
    with served(ROOT / "clusters" / "scripted.yaml", ["/health"]) as running:
        yield running
    assert running.processes() == [], "the server left processes behind"


@pytest.fixture(scope="module")
def report(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the driver found, by harness."""
    file = tmp_path_factory.mktemp("harness") / "report.json"
    command = [sys.executable, str(DRIVER), "--base-url", server.url(""), "--model", "lab-model"]
    command += ["--harness", ",".join(HARNESSES), "--report", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
    print(ran.stdout, ran.stderr, sep="\n")  # noqa: T201 - shown where a test fails
    assert file.exists(), "the driver ended without a report"
    return {entry["harness"]: entry for entry in json.loads(file.read_text())}


@pytest.mark.parametrize("harness", HARNESSES)
def test_harness_runs_a_whole_tool_turn(report: dict[str, Any], harness: str) -> None:
    found = report[harness]
    assert [name for name, passed in found["checks"].items() if not passed] == [], found
    assert found["info"]["errs"] == [], "the server refused a request of the harness"
    assert found["info"]["reasoning"], "the reasoning of the first turn did not come back"
    assert "repeated" not in found["info"], "the harness had to send a request again"
