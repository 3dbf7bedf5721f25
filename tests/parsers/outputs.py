"""Model outputs for the laws: sane blocks, model-like garbage, and ways to cut them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from parsers import grammars
from parsers.detokenizer import Piece
from parsers.grammar import Grammar
from parsers.machine import AUTO, TurnParser
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import Event, Usage
from turns.frames import Finish
from turns.turn import Tool, ToolChoice

SPECIAL = ("<think>", "</think>", "<tool_call>", "</tool_call>")
NAMES = ("hermes", "qwen3_coder")
TOOLS = (
    Tool("clock"),
    Tool(
        "save_file",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "body": {"type": "string"},
                "mode": {"type": "integer"},
                "force": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "owner": {"type": "object"},
                "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
        },
    ),
)

BITS = [
    *SPECIAL,
    "<function=save_file>",
    "<function=clock>",
    "<function=",
    "</function>",
    "<parameter=path>",
    "<parameter=tags>",
    "<parameter=mode>",
    "</parameter>",
    '{"name": "clock", "arguments": {}}',
    '{"name": "save_file", "arguments": {"path": "',
    '"arguments": ',
    '{"name": "clock"',
    '"}}',
    "[1, 'a'",
    "\\u00e9",
    "\\",
    '"',
    "{",
    "}",
    "<",
    "</",
    ">",
    "<tool",
    "</thi",
    "\n",
    "\n\n",
    "  ",
    "null",
    "12",
    "word",
    "héé",
    "日本",
    "🧑‍🚀",
]
garbage = st.lists(st.one_of(st.sampled_from(BITS), st.text(max_size=4)), max_size=24).map("".join)

_visible = st.characters(
    blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], blacklist_characters="<"
)
_words = st.text(_visible, min_size=1, max_size=12)
prose = st.lists(_words, min_size=1, max_size=8).map(" ".join)
_value = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="<\r"), max_size=40
)


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    if draw(st.booleans()):
        return ToolCall("", "clock", "{}")
    given = {
        "path": draw(_value),
        "body": draw(_value),
        "mode": draw(st.integers()),
        "force": draw(st.booleans()),
        "tags": draw(st.lists(_value, max_size=4)),
        "owner": draw(
            st.dictionaries(_words, st.one_of(st.none(), st.integers(), _value), max_size=3)
        ),
        "label": draw(st.one_of(st.none(), prose)),
    }
    keys = draw(st.lists(st.sampled_from(sorted(given)), unique=True))
    return ToolCall("", "save_file", json.dumps({k: given[k] for k in keys}, ensure_ascii=False))


@st.composite
def replies(draw: st.DrawFn) -> list[Reasoning | Text | ToolCall]:
    """Blocks that a model could mean: no two texts or thoughts side by side."""
    blocks: list[Reasoning | Text | ToolCall] = []
    for kind in draw(st.lists(st.sampled_from("rtc"), min_size=1, max_size=7)):
        last = blocks[-1] if blocks else None
        if kind == "r" and not isinstance(last, Reasoning):
            blocks.append(Reasoning(draw(prose)))
        elif kind == "t" and not isinstance(last, Text):
            blocks.append(Text(draw(prose)))
        elif kind == "c":
            blocks.append(draw(calls()))
    return blocks


def cuts(output: str) -> st.SearchStrategy[list[str]]:
    """The output in pieces, cut anywhere."""
    places = st.lists(st.integers(0, len(output)), max_size=12)
    return places.map(lambda at: _cut(output, sorted({0, len(output), *at})))


def _cut(output: str, places: Sequence[int]) -> list[str]:
    return [output[a:b] for a, b in pairwise(places)]


def grammar(name: str) -> Grammar:
    return grammars.get(name, special=SPECIAL)


def parse(
    chosen: Grammar,
    frames: Sequence[Sequence[Piece]],
    *,
    tail: str = "",
    tools: tuple[Tool, ...] = TOOLS,
    ids: bool = False,
    finish: Finish = "stop",
    stop: tuple[str, ...] = (),
    tool_choice: ToolChoice = AUTO,
) -> list[Event]:
    """All events of a turn."""
    parser = TurnParser(
        chosen,
        mint=lambda index, name: f"{name}_{index}",
        tools=tools,
        tail=tail,
        ids=ids,
        stop=stop,
        tool_choice=tool_choice,
    )
    events = [event for frame in frames for event in parser.feed(frame)]
    return events + parser.finish(finish, Usage())


def plain(chunks: Sequence[str]) -> list[list[Piece]]:
    """Chunks of a transport of plain text."""
    return [[Piece(chunk)] for chunk in chunks]
