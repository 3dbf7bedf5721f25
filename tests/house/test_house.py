"""The house keeps its own rules: small files, small functions, plain names, every room named."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = [
    "access",
    "actors",
    "cli",
    "deployments",
    "families",
    "observe",
    "parsers",
    "prompts",
    "protocols",
    "router",
    "sessions",
    "toolruns",
    "turns",
]
SOURCES = sorted(
    path
    for room in (*ROOMS, "tests", "benchmarks", "examples")
    for path in (ROOT / room).rglob("*.py")
)
BANNED = re.compile(r"(^|_)(utils?|helpers?|common|base|managers?)(_|\.py$|$)")


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_file_is_at_most_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_functions_are_at_most_60_lines(path: Path) -> None:
    long = [
        f"{node.name}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > 60
    ]
    assert not long


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_name_says_what_is_inside(path: Path) -> None:
    parts = path.relative_to(ROOT).parts
    assert not [part for part in parts if BANNED.search(part)]


@pytest.mark.parametrize("room", ROOMS)
def test_room_is_named_in_readme_with_its_sentence(room: str) -> None:
    assert re.search(rf"`{room}/`[^\n]*\w{{3,}}", (ROOT / "README.md").read_text())


@pytest.mark.parametrize("room", ROOMS)
def test_room_says_its_rule(room: str) -> None:
    assert ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))
