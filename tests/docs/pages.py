"""The pages that people read, and the fenced blocks on them."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

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
SHOWN = {"", "text"}
"""Blocks that are pictures and outputs, nothing to type."""


class Block(NamedTuple):
    """A fenced block: its page's name without `.md`, and its number among those of its kind."""

    page: str
    kind: str
    number: int
    body: str

    @property
    def name(self) -> str:
        return f"{self.page} {self.kind} {self.number}"


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks() -> list[Block]:
    """All that can be typed, saved or run."""
    found: list[Block] = []
    for page in PAGES:
        for kind, body in FENCE.findall(page.read_text()):
            if kind not in SHOWN:
                number = sum(one[:2] == (page.stem, kind) for one in found) + 1
                found.append(Block(page.stem, kind, number, body))
    return found


def of(kind: str) -> list[Any]:
    """The blocks of a kind, as parameters of a test."""
    return [pytest.param(block, id=block.name) for block in blocks() if block.kind == kind]


def commands(body: str) -> Iterator[list[str]]:
    """The words of each line of a shell block; quotes may span lines, here-documents are data."""
    joined = re.sub(r"\\\n\s*", " ", body)
    data = re.compile(r"<<'?(\w+)'?\n.*?^\1$", re.MULTILINE | re.DOTALL)
    open_ = ""
    for line in data.sub("", joined).splitlines():
        open_ += line + "\n"
        with contextlib.suppress(ValueError):
            words = shlex.split(open_, comments=True)
            open_ = ""
            while words and re.match(r"[A-Z_]+=", words[0]):
                words.pop(0)
            if words:
                yield words
