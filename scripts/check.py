"""Runs what CI runs, step by step, and closes with a plain summary. Exit code 0: all passed.

Usage: `check.py [--no-vllm] [STEP ...]`; without steps, all of them in this order. The tests of
one kind run in one pytest process: what Ray or vLLM leave in a process does not reach the others.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
REPORTS = ROOT / ".run"
NO_TESTS = 5  # pytest's exit code for "none collected"

TOOLS: dict[str, list[list[str]]] = {
    "format": [["ruff", "format", "--check", "."]],
    "lint": [["ruff", "check", "."]],
    "types": [["mypy"], ["mypy", *sorted(str(p) for p in (ROOT / "scripts").glob("*.py"))]],
    "floors": [["lint-imports"]],
}
TESTS = {
    "test": "not ray and not vllm and not harness and not gpu and not browser",
    "test-browser": "browser and not gpu",
    "test-ray": "ray and not vllm and not harness and not gpu",
    "test-vllm": "vllm and not harness and not gpu",
    "test-harness": "harness and not gpu",
}
ALONE = {
    "test-alone": (
        ("turns", "parsers", "protocols"),
        (),
        ("turns", "parsers", "families", "protocols", "conformance"),
    ),
    "test-prompts": (
        ("turns", "parsers", "protocols", "prompts"),
        ("starlette",),  # of examples/gateway.py
        ("prompts",),
    ),
}
"""Rooms that leave the house as wheels: the wheels, packages beside them, and the folders of tests
that run where nothing else is installed but what the wheels ask for and the test tools."""
PLACES = {
    "TREADLE_CORPUS": ROOT.parent / "shared" / "corpus",
    "TREADLE_FIXTURES": ROOT.parent / "shared" / "fixtures",
    "TREADLE_TEMPLATES": ROOT / ".models" / "templates",
}
"""Where tests look from the checkout: those that run elsewhere are told."""
ALONE_ROOMS = [folder for _, _, folders in ALONE.values() for folder in folders]

REAL = {"test-browser", "test-ray", "test-vllm", "test-harness"}
MOST_AGAIN = 6
"""More failures than these are no accident of a busy machine."""

LIMIT_S = dict.fromkeys(ALONE, 900) | dict.fromkeys(TESTS, 1200)


STEPS = (*TOOLS, *ALONE, *TESTS)


def bounded(command: list[str], limit: int) -> int:
    """The exit code of `command`; past `limit` seconds it and its children are ended: 124."""
    program = BIN / command[0]
    with subprocess.Popen(
        [str(program) if program.exists() else command[0], *command[1:]],
        cwd=ROOT,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(limit)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as reason:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(reason, KeyboardInterrupt):
                raise
            print(f"treadle: {command[0]} took over {limit} s and was ended", flush=True)
            return 124


def count(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of a junit report; one that is not there is a failure."""
    try:
        suite = ET.parse(report).getroot()[0]  # noqa: S314 pytest wrote it just now
    except (OSError, ET.ParseError, IndexError):
        return 0, 1, 0
    total, failures, errors, skipped = (
        int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    return total - failed - skipped, failed, skipped


def alone(step: str) -> list[str]:
    """The start of a pytest command in an environment of a step's wheels and the test tools."""
    wheels, beside, folders = ALONE[step]
    here = REPORTS / step
    bin_ = here / "env" / "bin"
    if not bin_.exists():
        bounded(["uv", "venv", "--quiet", str(bin_.parent)], 60)
    build = ["python", "scripts/wheels.py", "--tests", str(here / "tests"), str(here / "dist")]
    if bounded(build, 120):
        sys.exit("treadle: the rooms' wheels could not be built (see above)")
    built = [str(next((here / "dist").glob(f"treadle_{name}-*.whl"))) for name in wheels]
    again = [f"--reinstall-package=treadle-{name}" for name in wheels]
    install = ["uv", "pip", "install", "--quiet", "--python", str(bin_ / "python"), *again]
    bounded([*install, "--group", "alone", "-c", "requirements/core.lock", *beside, *built], 300)
    for name, place in PLACES.items():
        os.environ.setdefault(name, str(place))
    config = ["--rootdir", str(here / "tests"), "-c", str(here / "tests" / "pyproject.toml")]
    tests = [str(here / "tests" / "tests" / folder) for folder in folders]
    return [str(bin_ / "pytest"), *config, "-m", "not vllm", *tests]


def files_of(step: str) -> list[str]:
    """The test files that name the marker of a step: collecting all the others takes half a minute.

    A conftest that marks tests marks those of its folder.
    """
    marker = f"mark.{step.removeprefix('test-')}"
    named = [path for path in (ROOT / "tests").rglob("*.py") if marker in path.read_text()]
    return sorted({str(p.parent if p.name == "conftest.py" else p) for p in named})


def run_tests(step: str) -> tuple[bool, tuple[int, int, int]]:
    report = REPORTS / f"{step}.xml"
    report.unlink(missing_ok=True)
    start = alone(step) if step in ALONE else ["pytest", "-m", TESTS[step]]
    if step in REAL:
        start += files_of(step)
        if start[-1] == TESTS[step]:
            return True, (0, 0, 0)  # no file: pytest would take that for all of them
    if step == "test":  # what ran alone need not run again
        start += [f"--ignore=tests/{room}" for room in ALONE_ROOMS]
    if step not in REAL:  # two cores; a file's tests stay together
        start += ["-n", "2", "--dist", "loadfile"]
    command = [*start, "-q", f"--junitxml={report}"]
    code = bounded(command, LIMIT_S[step])
    if code == NO_TESTS:
        return True, (0, 0, 0)
    passed, failed, skipped = count(report)
    if step not in ALONE and 0 < failed <= MOST_AGAIN:
        return once_more(step, start, (passed, failed, skipped))
    return code == 0, (passed, failed or int(code != 0), skipped)


def once_more(
    step: str, start: list[str], before: tuple[int, int, int]
) -> tuple[bool, tuple[int, int, int]]:
    """Run what failed a second time: whole servers and clusters meet a busy machine here."""
    print(f"treadle: {step}: {before[1]} failed; once more", flush=True)
    report = REPORTS / f"{step}-again.xml"
    report.unlink(missing_ok=True)
    again = ["--last-failed", "--last-failed-no-failures", "none", f"--junitxml={report}"]
    code = bounded([*start, "-q", *again], LIMIT_S[step])
    passed, failed, _ = count(report)
    if code == 0 and passed:
        return True, (before[0] + passed, 0, before[2])
    return False, (before[0] + passed, failed or before[1], before[2])


def main() -> int:
    steps = [step for step in sys.argv[1:] if step != "--no-vllm"] or [*STEPS]
    if "--no-vllm" in sys.argv:
        steps = [step for step in steps if step != "test-vllm"]
    unknown = {*steps} - {*STEPS}
    if unknown:
        sys.exit(f"treadle: no step {', '.join(unknown)}; there is {', '.join(STEPS)}")
    REPORTS.mkdir(exist_ok=True)
    lines, sums, good = [], [0, 0, 0], True
    for step in steps:
        print(f"\ntreadle: {step}", flush=True)
        began = time.monotonic()
        counts = ""
        if step in TOOLS:
            fine = all([bounded(command, 600) == 0 for command in TOOLS[step]])  # noqa: C419 run all
        else:
            fine, tally = run_tests(step)
            sums = [a + b for a, b in zip(sums, tally, strict=True)]
            counts = "{} passed, {} failed, {} skipped".format(*tally)
        good = good and fine
        took = time.monotonic() - began
        lines.append(f"  {step:13}{'ok' if fine else 'FAILED':8}{took:6.0f} s  {counts}")
    print("\ntreadle: summary", *lines, sep="\n")
    if any(step not in TOOLS for step in steps):
        print("{} passed, {} failed, {} skipped".format(*sums))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
