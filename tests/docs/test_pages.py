"""The documentation keeps its word: links lead somewhere, and what a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from actors.unseen import HEADER
from cli.app import PARTS
from protocols.headers import AgentHints
from tests.docs.pages import FENCE, PAGES, ROOT, Block, commands, name, of

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")
RECIPE = re.compile(r"^([a-z][\w-]*)(?: [^:=\n]*)?:(?!=)", re.MULTILINE)
RECIPES = RECIPE.findall((ROOT / "justfile").read_text())
OUTSIDE = {"curl", "export", "python", "ray", "ssh"}
"""Programs that a block may name, and that are not ours."""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    targets = [target for target, _ in LINK.findall(text) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_link_into_a_page_finds_its_heading(page: Path) -> None:
    lost = []
    for target, heading in LINK.findall(FENCE.sub("", page.read_text())):
        if heading and "://" not in target:
            titles = re.findall(r"^#+ (.*)$", (page.parent / target).read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
            lost += [] if heading[1:] in slugs else [target + heading]
    assert lost == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"]
    assert [page.name for page in pages if f"({page.name})" not in index] == []


@pytest.mark.parametrize("block", of("sh"))
def test_a_command_of_a_block_exists(block: Block) -> None:
    for first, *rest in commands(block.body):
        if first == "just":
            assert rest[0] in RECIPES
        elif "/" in first:
            assert (ROOT / first).exists()
        else:
            assert first in OUTSIDE
        path = re.compile(r"\.?/?(?:scripts|examples|benchmarks)/[\w/.-]+$")
        scripts = [word for word in rest if path.match(word)]
        assert [script for script in scripts if not (ROOT / script).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_is_named_in_a_sentence_exists(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    verbs = re.findall(r"`(?:\./)?treadle ([a-z]\w*)", text)
    assert [verb for verb in verbs if verb not in PARTS] == []
    recipes = re.findall(r"`just ([\w-]+)", text)
    assert [recipe for recipe in recipes if recipe not in RECIPES] == []
    files = re.findall(
        r"`((?:scripts|examples|benchmarks|tests|ops|clusters|actors|router|protocols|parsers"
        r"|prompts|toolruns|observe|deployments|requirements)/[\w/.-]*\w)`",
        text,
    )
    assert [file for file in files if not (ROOT / file).exists() and "acme" not in file] == []


def test_every_hint_and_every_header_of_ours_is_on_a_page() -> None:
    hints = (ROOT / "docs/hints.md").read_text()
    for hint in AgentHints.__struct_fields__:
        assert f"`{hint}`" in hints
        assert f"`x-treadle-{hint.replace('_', '-')}`" in hints
    written = hints + (ROOT / "docs/apis.md").read_text()
    code = "".join(
        path.read_text() for room in ("protocols", "actors") for path in (ROOT / room).rglob("*.py")
    )
    ours = set(re.findall(r"(?<!b)\"(x-treadle-[a-z-]*[a-z])\"", code))
    assert HEADER in ours
    assert [header for header in sorted(ours) if header not in written] == []
