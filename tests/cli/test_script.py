from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_script_works_from_any_directory_and_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "treadle"
    link.symlink_to(ROOT / "treadle")
    env = os.environ | {"TREADLE_PYTHON": sys.executable}
    ran = subprocess.run(  # noqa: PLW1510 - the return code is looked at
        [str(link), "--help"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert "harness" in ran.stdout
