"""The process that holds the driver inside a served cluster, and the questions put to it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from typing import Any

from benchmarks.served import ROOT, Server

PATIENCE = 60.0
"""Seconds for an answer."""


def outside() -> dict[str, str]:
    """The environment without Serve's flags, which bind a handle to the loop it was made on."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_SERVE_")}


class Driver:
    """A child that runs `tests.cluster.inside`; one for all who ask about a server."""

    def __init__(self, server: Server) -> None:
        self._log = (server.folder / "inside.log").open("wb")
        self._inside = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.inside", server.gcs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env=outside() | {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "token"},
        )

    def close(self) -> None:
        assert self._inside.stdin
        assert self._inside.stdout
        self._inside.stdin.close()  # the end of its questions
        try:
            self._inside.wait(10)
        except subprocess.TimeoutExpired:
            self._inside.kill()
            self._inside.wait(10)
        self._inside.stdout.close()
        self._log.close()

    def ask(self, question: str, **arguments: Any) -> Any:
        """The answer of the driver inside; what went wrong there fails the test."""
        assert self._inside.stdin
        assert self._inside.stdout
        line = json.dumps({"question": question} | arguments)
        self._inside.stdin.write(line.encode() + b"\n")
        self._inside.stdin.flush()
        ready, _, _ = select.select([self._inside.stdout], [], [], PATIENCE)
        assert ready, f"no answer to {line}"
        found = json.loads(self._inside.stdout.readline())
        assert "error" not in found, f"{line}: {found['error']}"
        return found["answer"]
