"""A benchmark's end is told for what it is: a bar that holds, one that does not, or a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.benchmarks import BEFORE, INDEX, ROOT, main, question, run


@pytest.mark.parametrize(
    ("code", "printed", "how"),
    [
        pytest.param("print(1)\nsys.exit(0)", "1", "holds", id="holds"),
        pytest.param("print(1)", "1", "figures alone", id="no-bar"),
        pytest.param("print(1)\nsys.exit('late')", "1\nlate", "does not hold", id="missed"),
        pytest.param("import nothing_here", "", "ended with 1: ModuleNotFoundError", id="crash"),
        pytest.param("from benchmarks.sim import figures", "", "figures alone", id="imports"),
    ],
)
def test_how_a_benchmark_ended(code: str, printed: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "bench_it.py"
    path.write_text(f"import sys\n{code}\n")
    said, ended = run(path, ["--quick"])
    assert said == printed
    assert ended.startswith(how)


def test_a_name_that_is_none_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hint"]) == 2
    assert "hints" in capsys.readouterr().out


def test_every_benchmark_says_what_it_asks_and_the_index_has_a_place_for_the_page() -> None:
    for path in (ROOT / "benchmarks").glob("bench_*.py"):
        assert question(path)
    assert BEFORE in INDEX.read_text()
