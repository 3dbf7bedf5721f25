"""Every benchmark runs as a file, from anywhere, and has a short run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [pytest.param(file, id=file.stem) for file in sorted(ROOT.glob("benchmarks/bench_*.py"))]
TOP = {path.name for path in ROOT.iterdir() if path.is_dir()}


def of_the_house(module: str | None) -> bool:
    return (module or "").partition(".")[0] in TOP


@pytest.mark.parametrize("file", FILES)
def test_it_finds_the_rooms_before_it_imports_them(file: Path) -> None:
    tree = ast.parse(file.read_text())
    rooms = [
        n.lineno for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and of_the_house(n.module)
    ]
    found = [n.lineno for n in tree.body if ast.unparse(n).startswith("sys.path.insert(0, ")]
    assert not rooms or (found and found[0] < min(rooms))


@pytest.mark.parametrize("file", FILES)
def test_it_has_a_short_run(file: Path) -> None:
    assert 'add_argument("--quick"' in file.read_text()
