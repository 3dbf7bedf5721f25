"""`treadle harness NAME`, as a person starts it, does a whole turn with the real harness."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.harness.clis import KEPT, program
from tests.serving.server import MODEL, serving

pytestmark = [pytest.mark.harness, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[2]
WITHIN = 120.0
SAYS = "The command has spoken."


TURNS = {
    "claude": ["-p", "Speak."],
    "codex": ["exec", "--skip-git-repo-check", "Speak."],
    "opencode": ["run", "Speak."],
    "qwen": ["Speak."],
    "openclaw": ["--message", "Speak."],
}
"""What each is told after its name, for one turn without a person."""


SLOW = {"opencode", "openclaw"}
"""They take 15 and 70 seconds: asked for by `TREADLE_ALL_HARNESSES`."""


@pytest.mark.parametrize("name", TURNS)
async def test_the_command_starts_a_harness_that_talks_to_the_server(
    name: str, tmp_path: Path
) -> None:
    if name in SLOW and not os.environ.get("TREADLE_ALL_HARNESSES"):
        pytest.skip("slow; set TREADLE_ALL_HARNESSES")
    node = KEPT / "node24" / "node_modules" / ".bin"
    path = f"{program(name).parent}:{node}:/usr/local/bin:/usr/bin:/bin"
    env = {"HOME": str(tmp_path), "PATH": path, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    async with serving() as server:
        server.says({"text": SAYS})
        words = ["harness", name, "--url", server.url, "--model", MODEL, "--", *TURNS[name]]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "cli", *words),
            cwd=tmp_path,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            said, errors = await asyncio.wait_for(process.communicate(), WITHIN)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)  # the group that we began
            await process.wait()
            raise
    assert process.returncode == 0, errors.decode()[-2000:]
    assert SAYS in said.decode()
