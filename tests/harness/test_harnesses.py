"""Real harness CLIs, each on each of its APIs, against the scripted cluster, judged on the wire.

The driver installs the CLIs from npm on its first run (minutes) and runs each with a home of its
own: prompt, reasoning, a tool call that the harness itself executes, its result, a final answer.
The slowest run with `just harness-all` alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.served import ROOT, Server, served
from tests.harness.clis import KEPT
from tests.harness.watched import BLOCK
from tests.protocols.apis import problems

pytestmark = [pytest.mark.harness, pytest.mark.timeout(1100)]
DRIVER = Path(
    os.environ.get("TREADLE_HARNESS", ROOT.parent / "shared" / "harness" / "drive.py")
).resolve()
QUICK = [
    *("claude", "codex", "codex:catalog"),
    *("opencode", "opencode:anthropic", "opencode:responses"),
    *("qwen", "qwen:anthropic", "qwen:openai-responses"),
    *("pi", "pi:anthropic", "pi:responses"),
]
SLOW = ["cline", "openclaw"]
"""Half a minute to install each, and up to a minute to run."""

HARNESSES = QUICK + (SLOW if os.environ.get("TREADLE_ALL_HARNESSES") else [])
ECHOED = "qwen:openai-responses"
"""Its 80 kB of tools come back three times in a stream: more than the recorder keeps."""

UNLIKE = {
    "openclaw": "it moves the end of its prompt with every call",
    ECHOED: "the recorder cuts its streams before the usage",
}

WITHIN = 900.0
"""Seconds for the installation and the runs of all harnesses."""

APIS = {"messages": "messages", "responses": "responses", "completions": "chat"}
USAGE = re.compile(r'"usage":(\{(?:[^{}]|\{[^{}]*\})*\})')


def why_not() -> str:
    """Why the harnesses cannot be run here; "" when they can."""
    if not DRIVER.is_file():
        return f"no driver at {DRIVER}; set TREADLE_HARNESS to its path"
    if shutil.which("npm") is None:
        return "npm is not installed, which the harness CLIs come from"
    names = {harness.partition(":")[0] for harness in HARNESSES}
    if all((KEPT / name / "node_modules" / ".bin" / name).exists() for name in names):
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
    folder = tmp_path_factory.mktemp("harness")
    file = folder / "report.json"
    command = [sys.executable, str(DRIVER), "--base-url", server.url(""), "--model", "lab-model"]
    command += ["--harness", ",".join(HARNESSES), "--report", str(file), "--tools", str(KEPT)]
    ran = subprocess.run(
        [*command, "--keep"],
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    print(ran.stdout, ran.stderr, sep="\n")  # noqa: T201 - shown where a test fails
    assert file.exists(), "the driver ended without a report"
    return {entry["harness"]: entry for entry in json.loads(file.read_text())}


def answers(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The turns that a harness asked for: the API, and the record of each."""
    lines = (Path(found["dir"]) / "wire.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [
        (APIS[record["path"].rpartition("/")[2]], record)
        for record in records
        if record["method"] == "POST" and record["path"].rpartition("/")[2] in APIS
    ]


def whole(record: dict[str, Any]) -> bool:
    """Whether the recorder kept all of a response: it cuts the longest ones."""
    return len(record["resp"]["text"].encode()) == record["resp"]["bytes"]


def usage(record: dict[str, Any]) -> tuple[int, int, int]:
    """Tokens of the prompt, those of them that the engine's cache held, and tokens that came."""
    said = json.loads(USAGE.findall(record["resp"]["text"])[-1])
    details = said.get("prompt_tokens_details") or said.get("input_tokens_details")
    if details is None:
        cached = said["cache_read_input_tokens"]
        return said["input_tokens"] + cached, cached, said["output_tokens"]
    prompt = said.get("prompt_tokens", said.get("input_tokens"))
    return (
        prompt,
        details["cached_tokens"],
        said.get("completion_tokens", said.get("output_tokens")),
    )


@pytest.mark.parametrize("harness", HARNESSES)
def test_harness_runs_a_whole_tool_turn(report: dict[str, Any], harness: str) -> None:
    found = report[harness]
    assert [name for name, passed in found["checks"].items() if not passed] == [], found
    assert found["info"]["errs"] == [], "the server refused a request of the harness"
    assert found["info"]["reasoning"], "the reasoning of the first turn did not come back"
    assert "repeated" not in found["info"], "the harness had to send a request again"


@pytest.mark.parametrize("harness", HARNESSES)
def test_every_stream_of_a_harness_is_strictly_right(report: dict[str, Any], harness: str) -> None:
    streams = [(api, record) for api, record in answers(report[harness]) if whole(record)]
    if harness != ECHOED:
        assert streams
    for api, record in streams:
        assert problems(api, record["resp"]["text"].encode()) == []


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_second_call_finds_all_of_the_first(report: dict[str, Any], harness: str) -> None:
    """By the engine's own counters: all blocks that are whole, but for the token never computed."""
    if reason := UNLIKE.get(harness):
        pytest.skip(reason)
    turns = [record for _, record in answers(report[harness]) if record["body"].get("tools")]
    first, second = (usage(record) for record in turns)
    assert second[1] >= (first[0] + first[2] - 1) // BLOCK * BLOCK
