"""Whether a harness calls as many tools in one set of runs as in another, over the same tasks.

    python -m scripts.parity RUN_A RUN_B [--alpha 0.05] [--json]

A run is a folder or a file. A folder has for each task a recording of what the harness sent, as
`TASK.jsonl` or `TASK/wire.jsonl` (a line a request, its `body` the JSON that was sent); a task that
was run several times has `TASK.1`, `TASK.2` and so on. A file is JSON or JSON lines:
`{task: calls}`, or objects with `task` and `tool_calls`.

Tasks are paired; the figure of a task is the mean of its repetitions. The test flips the signs of
the differences at random (all ways where there are few), so it supposes nothing about how calls
are spread. Exit status: 0 no difference was found, 1 the runs differ, 2 they cannot be compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import random
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Calls = Mapping[str, float]
"""Tool calls by task."""

EXACT = 16
"""Differences up to which all ways of flipping signs are tried."""

ROUNDS = 20_000
REPETITION = re.compile(r"\.\d+$")
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call")


class RunError(ValueError):
    """A run that cannot be read or compared; the message says why."""


@dataclasses.dataclass(frozen=True)
class Parity:
    """Two runs over `tasks`. `more_a` tasks took more calls in A, `more_b` in B, `even` as many.

    `mean` is by how many calls B is above A in a task. `p`: how likely a difference at least as
    large is where the two are alike.
    """

    tasks: int
    total_a: float
    total_b: float
    more_a: int
    more_b: int
    even: int
    mean: float
    p: float
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


def compare(a: Calls, b: Calls, *, seed: int = 0) -> Parity:
    """Compare two runs over the tasks that both have. Raises RunError where there is none."""
    tasks = sorted(a.keys() & b.keys())
    if not tasks:
        raise RunError("the two runs have no task in common")
    differences = [b[task] - a[task] for task in tasks]
    return Parity(
        tasks=len(tasks),
        total_a=sum(a[task] for task in tasks),
        total_b=sum(b[task] for task in tasks),
        more_a=sum(difference < 0 for difference in differences),
        more_b=sum(difference > 0 for difference in differences),
        even=sum(difference == 0 for difference in differences),
        mean=statistics.fmean(differences),
        p=chance(differences, seed=seed),
        only_a=tuple(sorted(a.keys() - b.keys())),
        only_b=tuple(sorted(b.keys() - a.keys())),
    )


def chance(differences: Sequence[float], *, seed: int = 0, rounds: int = ROUNDS) -> float:
    """How often signs at random make a sum as far from nought as the one that was seen."""
    moved = [abs(difference) for difference in differences if difference]
    seen = abs(sum(differences))
    if len(moved) <= EXACT:
        flips = itertools.product((1, -1), repeat=len(moved))
        sums = [abs(sum(s * d for s, d in zip(signs, moved, strict=True))) for signs in flips]
        return sum(one >= seen for one in sums) / len(sums)
    dice = random.Random(seed)  # noqa: S311 - no secret
    far = 0
    for _ in range(rounds):
        bits = dice.getrandbits(len(moved))
        one = sum(d if bits >> at & 1 else -d for at, d in enumerate(moved))
        far += abs(one) >= seen
    return (far + 1) / (rounds + 1)  # the signs as they were seen are one of the ways


def read(path: Path) -> dict[str, float]:
    """A run: tool calls by task. Raises RunError."""
    try:
        found = _folder(path) if path.is_dir() else _file(path)
        counts: dict[str, list[float]] = defaultdict(list)
        for task, calls in found:
            counts[task].append(float(calls))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(f"{path}: not a run: {error!r}") from None
    if not counts:
        raise RunError(f"{path}: there is no task in it")
    return {task: statistics.fmean(calls) for task, calls in counts.items()}


def _file(path: Path) -> Iterator[tuple[str, float]]:
    text = path.read_text(encoding="utf-8")
    try:
        read: Any = json.loads(text)
    except ValueError:
        read = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(read, dict) and "task" not in read:
        yield from read.items()
        return
    for entry in [read] if isinstance(read, dict) else read:
        yield str(entry["task"]), entry["tool_calls"]


def _folder(path: Path) -> Iterator[tuple[str, float]]:
    logs = [(log.stem, log) for log in path.glob("*.jsonl")]
    logs += [(log.parent.name, log) for log in path.glob("*/wire.jsonl")]
    for name, log in sorted(logs):
        lines = log.read_text(encoding="utf-8").splitlines()
        bodies = [json.loads(line).get("body") for line in lines if line.strip()]
        yield REPETITION.sub("", name), len(called(bodies))


def called(bodies: Iterable[Any]) -> set[str]:
    """The ids of all tool calls in the histories that a harness sent, of any of the three APIs."""
    found: set[str] = set()
    for body in bodies:
        if not isinstance(body, dict):
            continue
        for message in body.get("messages") or ():
            for call in message.get("tool_calls") or ():
                found.add(str(call.get("id")))
            for block in _list(message.get("content")):
                if block.get("type") == "tool_use":
                    found.add(str(block.get("id")))
        for item in _list(body.get("input")):
            if item.get("type") in CALLS:
                found.add(str(item.get("call_id") or item.get("id")))
    return found


def _list(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def table(found: Parity, names: tuple[str, str], alpha: float) -> str:
    """What people read."""
    a, b = names
    verdict = "the runs differ" if found.p < alpha else "no difference was found"
    lines = [
        f"{found.tasks} tasks in both runs",
        f"tool calls        {found.total_a:g} in {a}, {found.total_b:g} in {b}",
        f"more calls in     {a}: {found.more_a} tasks, {b}: {found.more_b}, even: {found.even}",
        f"mean difference   {found.mean:+.2f} calls a task",
        f"permutation test  p = {found.p:.4f}: {verdict} at {alpha:g}",
    ]
    for name, only in ((a, found.only_a), (b, found.only_b)):
        if only:
            lines.append(f"only in {name}: {', '.join(only)}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="treadle parity",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run_a", type=Path)
    parser.add_argument("run_b", type=Path)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    given = parser.parse_args(argv)
    try:
        found = compare(read(given.run_a), read(given.run_b), seed=given.seed)
    except RunError as error:
        print(error, file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps(dataclasses.asdict(found)))
    else:
        print(table(found, (given.run_a.name, given.run_b.name), given.alpha))
    return int(found.p < given.alpha)


if __name__ == "__main__":
    sys.exit(main())
