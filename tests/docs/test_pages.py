"""The documentation keeps its word: links lead somewhere, commands exist, snippets run."""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.app import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("wheels/*.md"),
        *ROOT.glob("requirements/*.md"),
    ]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")
OUTSIDE = {  # programs that a page may name, and that are not ours
    "ANTHROPIC_BASE_URL", "T", "cat", "cd", "claude", "codex", "curl", "docker", "echo", "export",
    "git", "kubectl", "npm", "pip", "pytest", "python", "ray", "serve", "ssh", "uv", "uvicorn",
}  # fmt: skip


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(language: str) -> list[tuple[Path, str]]:
    return [
        (page, body)
        for page in PAGES
        for kind, body in FENCE.findall(page.read_text())
        if kind == language
    ]


def lines(body: str) -> Iterator[list[str]]:
    """The words of each command of a shell block; quotes may span lines, here-documents are data."""
    joined = re.sub(r"\\\n\s*", " ", body)
    open_ = ""
    for line in re.sub(
        r"<<'?(\w+)'?\n.*?^\1$", "", joined, flags=re.MULTILINE | re.DOTALL
    ).splitlines():
        open_ += line + "\n"
        with contextlib.suppress(ValueError):
            yield shlex.split(open_, comments=True)
            open_ = ""


def commands() -> list[Any]:
    """The first command of each line of each shell block."""
    found = []
    for page, body in blocks("sh"):
        for words in lines(body):
            while words and re.match(r"[A-Z_]+=", words[0]):
                words.pop(0)
            if words:
                found.append(pytest.param(words, id=f"{page.stem}: {' '.join(words)[:50]}"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    targets = [target for target, _ in LINK.findall(text) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"]
    assert [page.name for page in pages if f"({page.name})" not in index] == []


@pytest.mark.parametrize("words", commands())
def test_a_command_of_a_page_exists(words: list[str]) -> None:
    first, rest = words[0], words[1:]
    if first == "just":
        recipes = re.findall(
            r"^([a-z][\w-]*)(?: [^:=\n]*)?:(?!=)", (ROOT / "justfile").read_text(), re.MULTILINE
        )
        assert rest[0] in recipes
    elif "/" in first:
        assert (ROOT / first).exists()
    else:
        assert first in OUTSIDE
    scripts = [
        word for word in rest if re.match(r"\.?/?(?:scripts|examples|benchmarks)/[\w/.-]+$", word)
    ]
    assert [script for script in scripts if not (ROOT / script).exists()] == []


TREADLE = sorted({tuple(w[1:2]) for p in commands() for w in p.values if w[0] == "./treadle"})


@pytest.mark.parametrize("verb", TREADLE, ids=str)
def test_treadle_knows_each_verb_of_the_pages(verb: tuple[str, ...]) -> None:
    assert CliRunner().invoke(main, [*verb, "--help"]).exit_code == 0


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_on_a_page_is_python(page: Path) -> None:
    for owner, body in blocks("python"):
        if owner == page:
            compile(body, name(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
