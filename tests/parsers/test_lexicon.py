from __future__ import annotations

import pytest

from parsers.lexicon import Lexicon


@pytest.mark.parametrize(
    ("markers", "text", "found"),
    [
        pytest.param(["<a>"], "x<a>y", (1, 4), id="found"),
        pytest.param(["<a>"], "x<a", (1, -1), id="held"),
        pytest.param(["<a>"], "x<b", (3, -1), id="look-alike"),
        pytest.param(["<a>"], "plain", (5, -1), id="nothing"),
        pytest.param(["<a>", "<a>b"], "<a>b", (0, 4), id="the-longest-wins"),
        pytest.param(["<a>", "<a>bc"], "<a>b", (0, -1), id="the-longer-may-come"),
        pytest.param(["<a>", "<a>bc"], "<a>x", (0, 3), id="the-longer-did-not-come"),
        pytest.param(["<<a"], "<<<a", (1, 4), id="overlapping-start"),
        pytest.param(["ab", "[x"], "..[x", (2, 4), id="two-first-characters"),
        pytest.param([], "anything", (8, -1), id="no-markers"),
    ],
)
def test_find(markers: list[str], text: str, found: tuple[int, int]) -> None:
    assert Lexicon(markers).find(text, 0) == found


def test_nothing_is_held_when_no_more_will_come() -> None:
    assert Lexicon(["<a>", "<a>b"]).find("x<a>", 0, final=True) == (1, 4)
    assert Lexicon(["<a>"]).find("x<a", 0, final=True) == (3, -1)


@pytest.mark.parametrize(
    ("text", "end"), [("<a>", 3), ("<a", 0), ("<b", -1), ("x<a>", -1), ("<a>!", 3)]
)
def test_at(text: str, end: int) -> None:
    assert Lexicon(["<a>"]).at(text, 0) == end
