from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from actors.engines.vllm.reaper import MARK, Reaper, marked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

OWNER = """
import subprocess, sys
from actors.engines.vllm.reaper import Reaper
reaper = Reaper()
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
print(sleeper.pid, reaper._process.pid, flush=True)
sys.stdin.read()
"""


def gone(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(timeout=30)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


def test_children_end_with_a_killed_owner() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        sleeper, reaper = map(int, owner.stdout.readline().split())
        assert psutil.pid_exists(sleeper)
        owner.kill()
        assert gone(sleeper)
        assert gone(reaper)


def test_close_ends_what_was_left_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MARK, raising=False)
    command = [sys.executable, "-c", "import time; time.sleep(300)"]
    with subprocess.Popen(command) as before:
        reaper = Reaper()
        with subprocess.Popen(command) as left:
            reaper.close()
            assert left.wait(30) == -9
        assert before.poll() is None
        before.kill()
    assert marked("no such mark") == []
