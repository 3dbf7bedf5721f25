"""Runs every benchmark and writes what it found to docs/benchmarks.md.

Usage: `benchmarks.py [--full] [NAME ...]`. A page is only written from a run of all of them; with
names, what they print is shown.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
LIMIT_S = 900
HEAD = """\
# Benchmarks

What `just benchmarks` found on {date}: {cores} cores, {machine}, Python {python}, load {load} as it
began. Written by the run itself. Each is `python benchmarks/NAME.py`{quick}; it measures beside its
peer in one run where the peer is installed, so read ratios, and figures with the machine in mind.
"""


def question(path: Path) -> str:
    """What a benchmark asks: the first paragraph of its docstring."""
    text = path.read_text().split('"""')[1]
    return " ".join(text.split("\n\n")[0].split())


def run(path: Path, arguments: list[str]) -> tuple[str, str]:
    """What it printed, and how it ended: `holds`, `does not hold` or `ended with N`."""
    command = [sys.executable, str(path), *arguments]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"did not end within {LIMIT_S} s"
    verdicts = {0: "holds", 1: "does not hold"}
    return done.stdout.strip(), verdicts.get(done.returncode, f"ended with {done.returncode}")


def main(arguments: list[str]) -> int:
    full = "--full" in arguments
    names = [name for name in arguments if not name.startswith("-")]
    paths = sorted((ROOT / "benchmarks").glob("bench_*.py"))
    chosen = [path for path in paths if not names or path.stem.removeprefix("bench_") in names]
    page = [
        HEAD.format(
            date=dt.datetime.now(dt.UTC).date(),
            cores=os.cpu_count(),
            machine=platform.machine(),
            python=platform.python_version(),
            load=f"{os.getloadavg()[0]:.1f}",
            quick="" if full else " with `--quick`",
        )
    ]
    bad = 0
    for path in chosen:
        print(f"treadle: {path.stem}", flush=True)
        said, how = run(path, [] if full else ["--quick"])
        print(said, how, sep="\n", flush=True)
        bad += how != "holds"
        page.append(f"## {path.stem}\n\n{question(path)} **{how}**\n\n```text\n{said}\n```\n")
    if not names:
        PAGE.write_text("\n".join(page))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
