"""Model-like output in the syntax of any grammar: its own marks, its own calls, and noise."""

from __future__ import annotations

import re
from functools import cache

from hypothesis import strategies as st

from parsers import grammars
from parsers.detokenizer import Piece
from parsers.grammar import Grammar
from parsers.write import write
from turns.blocks import Reasoning, Text, ToolCall

NOISE = ["\n", " ", '"', "{", "}", "[", "]", "(", ")", "=", ":", ",", "<", ">", "\\", "12", "word"]
NOISE += ["null", "True", "é", "🧑‍🚀", '{"name": "clock", "arguments": {}}', "clock()", "clock"]
CALL = ToolCall("", "save_file", '{"path": "a b", "mode": 3, "tags": ["x"]}')
CLOCK = ToolCall("", "clock", "{}")


@cache
def marks(name: str) -> tuple[str, ...]:
    """Every mark of the grammar, longest first."""
    found = {mark for _, state in grammars.get(name).states for mark, _ in state.on}
    return tuple(sorted(found, key=len, reverse=True))


@cache
def control(name: str) -> tuple[str, ...]:
    """The marks that would be control tokens: those with a bracket and a word inside."""
    return tuple(m for m in marks(name) if re.fullmatch(r"[<\[◁].*\w.*[>\]▷]", m, re.DOTALL))


def outputs(name: str) -> st.SearchStrategy[str]:
    grammar = grammars.get(name)
    bits = [*marks(name), *NOISE]
    if grammar.calls:
        for blocks in ([CALL], [CLOCK, CALL], [Text("hi"), CALL]):
            said = write(grammar, blocks)
            bits += [said, said[: len(said) // 2], said[len(said) // 2 :]]
    return st.lists(st.sampled_from(bits), max_size=16).map("".join)


def tokens(name: str, output: str) -> list[Piece]:
    """The output as control tokens and text."""
    known = control(name)
    if not known:
        return [Piece(output)] if output else []
    parts = re.split("(" + "|".join(map(re.escape, known)) + ")", output)
    return [Piece(part, special=part in known) for part in parts if part]


def sayable(grammar: Grammar) -> list[list[Reasoning | Text | ToolCall]]:
    """Replies of the usual shape that the grammar can say."""
    thought = [Reasoning("I think so.")] if grammar.reasoning else []
    replies: list[list[Reasoning | Text | ToolCall]] = [[Text("Hello there.")]]
    replies.append([*thought, Text("Hello there.")])
    if grammar.calls:
        replies += [[CALL], [*thought, CALL, CLOCK], [*thought, CLOCK, CALL, CALL]]
    return replies
