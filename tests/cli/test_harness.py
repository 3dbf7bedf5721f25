from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cli.harnesses.registry import HARNESSES
from cli.harnesses.setup import Target, filled, shell
from tests.serving.server import serving, settings

TARGET = Target("http://127.0.0.1:8000", "lab-model", Path("/nowhere/own"), 32_768, 4_096)


@pytest.mark.parametrize("name", HARNESSES)
def test_a_setup_names_server_and_model_and_writes_no_key(name: str) -> None:
    setup = HARNESSES[name](TARGET)
    text = json.dumps([setup.environment, setup.files, setup.arguments])
    assert TARGET.url in text
    assert TARGET.model in text
    assert "TREADLE_API_KEY" in text
    own = filled(setup, {"TREADLE_API_KEY": "the-key", "HOME": "/h"})
    assert own["HOME"] == "/h"
    assert not [value for value in own.values() if "${" in value]
    assert "the-key" not in "".join(setup.files.values())
    assert filled(setup, {})["TREADLE_API_KEY"] == "none"


@pytest.mark.parametrize("name", HARNESSES)
def test_files_are_what_the_harness_parses(name: str) -> None:
    for path, text in HARNESSES[name](TARGET).files.items():
        read = json.loads if path.endswith(".json") else tomllib.loads
        assert read(text)


@pytest.mark.parametrize("name", HARNESSES)
def test_printed_lines_do_what_the_command_does(name: str, tmp_path: Path) -> None:
    """They run in a real shell, a program in place of the harness that shows what it was given."""
    setup = HARNESSES[name](
        Target("http://127.0.0.1:8000", "lab-model", tmp_path / "it's own", 32_768, None)
    )
    program = tmp_path / setup.program
    program.write_text('#!/bin/sh\nenv -0\nprintf "ARG=%s\\0" "$@"\n')
    program.chmod(0o700)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TREADLE_API_KEY": "k'1"}
    ran = subprocess.run(["sh", "-eu"], input=shell(setup), env=env, capture_output=True, text=True)  # noqa: PLW1510, S607 - whichever sh
    assert ran.returncode == 0, ran.stderr
    pairs = [line.split("=", 1) for line in ran.stdout.split("\0") if line]
    assert [value for name, value in pairs if name == "ARG"] == list(setup.arguments) or [""]
    found = dict(pairs)
    wanted = filled(setup, env)
    assert {name: found[name] for name in setup.environment} == {
        name: wanted[name] for name in setup.environment
    }
    for path, text in setup.files.items():
        assert Path(path).read_text() == text


async def test_a_server_is_asked_for_its_model_and_window(asked: Any, tmp_path: Path) -> None:
    async with serving() as server:
        words = ("harness", "claude", "--url", server.url, "--folder", str(tmp_path))
        said = await asked(*words, "--", "-p", "hi")
        other = await asked("harness", "claude", "--url", server.url, "--model", "gpt-9")
    assert said["arguments"] == ["--model", "lab-model", "-p", "hi"]
    assert int(said["environment"]["CLAUDE_CODE_MAX_CONTEXT_TOKENS"]) > 1000
    assert "serves lab-model" in other["error"]


async def test_a_model_too_small_for_a_harness_is_said(typed: Any, tmp_path: Path) -> None:
    async with serving(settings(options={"max_model_len": 8192})) as server:
        words = ["harness", "claude", "--print", "--url", server.url, "--folder", str(tmp_path)]
        told = await asyncio.to_thread(typed, *words)
    assert told.exit_code == 0
    assert "no more than 8,192 tokens" in " ".join(told.stderr.split())
    assert "8,192" not in told.stdout


async def test_a_program_that_is_not_there_is_said(
    typed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with serving() as server:
        words = ["harness", "codex", "--url", server.url, "--folder", str(tmp_path)]
        told = await asyncio.to_thread(typed, *words)
    assert told.exit_code == 2
    assert "npm install -g @openai/codex" in " ".join(told.output.split())


def test_no_server_is_said_with_what_to_do(typed: Any) -> None:
    told = typed("models", "--url", "http://127.0.0.1:1")
    assert told.exit_code == 2
    assert "treadle serve" in told.output
    assert "no URL" in typed("models", "--url", "nowhere").output
