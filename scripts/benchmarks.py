"""Runs every benchmark and writes what it found to docs/benchmarks.md.

Usage: `benchmarks.py [--full] [NAME ...]`, NAME as in benchmarks/bench_NAME.py. A page is only
written from a run of all of them; with names, what they print is shown.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
INDEX = ROOT / "docs" / "README.md"
BEFORE = "| find out what is wrong |"
ROW = "| know how fast it is | [benchmarks](benchmarks.md) |\n"
LIMIT_S = 900
HEAD = """\
# Benchmarks

What `just benchmarks` found on {date}: {cores} cores, {machine}, Python {python}, load {load} as it
began. Written by the run itself. Each is `just bench NAME`{quick}; it measures beside its peer in
one run where the peer is installed, so read ratios, and figures with the machine in mind.
"""


def question(path: Path) -> str:
    """What a benchmark asks: the first paragraph of its docstring."""
    text = path.read_text().split('"""')[1]
    return " ".join(text.split("\n\n")[0].split())


def run(path: Path, arguments: list[str]) -> tuple[str, str]:
    """What it printed, and its verdict: `holds`, `does not hold`, or why there is none."""
    try:
        done = subprocess.run(
            [sys.executable, str(path), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"did not end within {LIMIT_S} s"
    said = re.sub(rf"({ROOT}|{tempfile.gettempdir()})/", "", done.stdout).strip()
    aside = done.stderr.strip().splitlines()[-1:]
    if done.returncode == 0:
        return said, "holds" if "sys.exit(" in path.read_text() else "figures alone"
    if done.returncode == 1 and "Traceback" not in done.stderr:
        return "\n".join([said, *aside]).strip(), "does not hold"
    print(done.stderr, file=sys.stderr, flush=True)
    return said, f"ended with {done.returncode}: {''.join(aside)}"


def main(arguments: list[str]) -> int:
    full = "--full" in arguments
    names = [name for name in arguments if not name.startswith("-")]
    paths = sorted((ROOT / "benchmarks").glob("bench_*.py"))
    known = [path.stem.removeprefix("bench_") for path in paths]
    if strange := set(names) - set(known):
        print(f"treadle: no benchmark {min(strange)!r}; there is {', '.join(known)}")
        return 2
    chosen = [path for path, name in zip(paths, known, strict=True) if not names or name in names]
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
        bad += how not in {"holds", "figures alone"}
        page.append(f"## {path.stem}\n\n{question(path)} **{how}**\n\n```text\n{said}\n```\n")
    if not names:
        PAGE.write_text("\n".join(page))
        if ROW not in (index := INDEX.read_text()):
            INDEX.write_text(index.replace(BEFORE, ROW + BEFORE))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
