"""Serve's request router obeys each call's own choice of a replica."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_call_that_is_ready_first_does_not_take_the_place_of_one_that_came_first() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.deployments.pinned_calls"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    given = json.loads(run.stdout.splitlines()[-1])
    assert len(given) == 8
    assert [found for _, found in given] == [wanted for wanted, _ in given]
