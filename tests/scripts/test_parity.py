"""Parity of two sets of harness runs: known data, known answers."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from scripts.parity import RunError, called, chance, compare, main, read


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        pytest.param([1, 1, 1], 2 / 8, id="all-one-way"),
        pytest.param([1, -1], 1.0, id="even"),
        pytest.param([0, 0], 1.0, id="nothing-moved"),
        pytest.param([3, 1, 0], 2 / 4, id="noughts-do-not-count"),
        pytest.param([1] * 10, 2 / 1024, id="ten-one-way"),
        pytest.param([4, 4, -1], 4 / 8, id="one-against-two"),
    ],
)
def test_the_exact_test(differences: list[float], expected: float) -> None:
    assert chance(differences) == pytest.approx(expected)


def test_the_test_by_sampling_agrees_and_is_the_same_every_time() -> None:
    even = [1, -1] * 20
    assert chance(even) == chance(even)
    assert chance(even) > 0.9
    assert chance([1] * 40) < 0.001
    some = [2, -1] * 10  # the sum is 10, its deviation under flips 7.07: p is about 0.18
    assert 0.12 < chance(some) < 0.25


def runs(calls: int, tasks: int = 50, seed: int = 1) -> dict[str, float]:
    """Some fifty tasks with about as many calls in all."""
    dice = Random(seed)
    return {f"t{n}": dice.randint(calls // tasks - 8, calls // tasks + 8) for n in range(tasks)}


def test_what_nvidia_saw_without_an_alias_differs_and_with_it_does_not() -> None:
    own, without, alias = runs(2087, seed=1), runs(1048, seed=2), runs(2087, seed=5)
    differ = compare(own, without)
    assert (differ.tasks, differ.more_b) == (50, sum(without[t] > own[t] for t in own))
    assert differ.mean < -15
    assert differ.p < 0.001
    assert compare(own, alias).p > 0.05
    assert compare(own, own).p == 1.0


def test_only_tasks_of_both_are_compared() -> None:
    found = compare({"a": 1, "b": 2, "x": 9}, {"a": 1, "b": 5, "y": 9})
    assert (found.tasks, found.total_a, found.total_b) == (2, 3, 6)
    assert (found.more_a, found.more_b, found.even) == (0, 1, 1)
    assert (found.only_a, found.only_b) == (("x",), ("y",))
    with pytest.raises(RunError, match="in common"):
        compare({"a": 1}, {"b": 1})


BODIES: list[Any] = [
    None,
    {"messages": [{"content": [{"type": "tool_use", "id": "t1"}, {"type": "text"}]}]},
    {"messages": [{"content": [{"type": "tool_use", "id": "t1"}]}, {"tool_calls": [{"id": "c1"}]}]},
    {"input": "text"},
    {"input": [{"type": "function_call", "call_id": "f1"}, {"type": "shell_call", "id": "s1"}]},
    {"input": [{"type": "function_call", "call_id": "f1"}, {"role": "user", "content": "x"}]},
]


def test_a_call_is_counted_once_however_often_it_is_sent() -> None:
    assert called(BODIES) == {"t1", "c1", "f1", "s1"}


TOLD = [("one", 2), ("one", 3), ("two", 4)]


def test_runs_are_read_from_recordings_and_from_figures(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({"body": body}) for body in BODIES)
    (tmp_path / "one.1.jsonl").write_text(lines)
    (tmp_path / "one.2.jsonl").write_text(json.dumps({"body": BODIES[1]}) + "\n")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "wire.jsonl").write_text(lines)
    assert read(tmp_path) == {"one": 2.5, "two": 4.0}
    figures = tmp_path / "figures.json"
    for text in (
        '{"one": 2.5, "two": 4}',
        '[{"task": "one", "tool_calls": 2.5}, {"task": "two", "tool_calls": 4}]',
        "\n".join(json.dumps({"task": t, "tool_calls": n}) for t, n in TOLD),
    ):
        figures.write_text(text)
        assert read(figures) == {"one": 2.5, "two": 4.0}


def test_the_command_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name, run in (("own", runs(2087)), ("none", runs(1048, seed=2)), ("same", runs(2087))):
        paths.append(tmp_path / name)
        paths[-1].write_text(json.dumps(run))
    own, none, same = map(str, paths)
    assert main([own, none]) == 1
    assert "the runs differ" in capsys.readouterr().out
    assert main([own, same]) == 0
    assert main([own, same, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["tasks"] == 50
    for bad in ("", "[1]", "{}", '{"a": "x"}', "nothing"):
        paths[0].write_text(bad)
        assert main([own, same]) == 2
        assert str(paths[0]) in capsys.readouterr().err
    assert main([str(tmp_path / "absent"), same]) == 2
