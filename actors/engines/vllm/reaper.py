"""Ends vLLM's processes when the process that started them is gone, however it went.

vLLM's EngineCore does not notice that its parent was killed: it would hold the model's memory for
ever. So each engine has a reaper, a small process that waits on a pipe from it. When the pipe
closes, what still carries the engine's mark in its environment is killed. Linux only (`/proc`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

MARK = "TREADLE_VLLM_ENGINE"
ROUNDS, PAUSE_S = 20, 0.1  # a process may be born while the first round runs


class Reaper:
    """Watches from construction to `close`. What is started before `unmark` bears the mark."""

    def __init__(self) -> None:
        mark = uuid.uuid4().hex
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        os.environ[MARK] = mark
        self._process = subprocess.Popen(  # noqa: S603 this file, run by this Python
            [sys.executable, "-I", "-S", __file__, mark],
            stdin=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C and a killed process group must not reach it
        )

    def unmark(self) -> None:
        os.environ.pop(MARK, None)

    def close(self) -> None:
        """Also ends what vLLM's own shutdown left."""
        self.unmark()
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(ROUNDS * PAUSE_S + 5)


def marked(mark: str) -> list[int]:
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            # A process may end while it is looked at; another user's cannot be read.
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def reap(mark: str) -> None:
    for _ in range(ROUNDS):
        left = marked(mark)
        if not left:
            return
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.stdin.buffer.read()  # nothing is ever sent: it returns when the other end is gone
    reap(sys.argv[1])
