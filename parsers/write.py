"""The inverse of the machine: blocks in a grammar's native wire syntax.

For engines that answer from a script and for the round-trip law of the tests: what is written is
read back as the same blocks. It is spelled by the tables; nothing here knows a family.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec

from parsers.compiled import compiled
from parsers.grammar import Grammar, Spelling
from parsers.json_text import quoted
from turns.blocks import Reasoning, Text, ToolCall

Written = Reasoning | Text | ToolCall
_KINDS = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    dict: "object",
    list: "array",
}


def write(grammar: Grammar, blocks: Iterable[Written], *, tail: str = "") -> str:
    """The output that says these blocks behind a prompt with this tail.

    Raises ValueError when the grammar cannot say a block: a call where it knows no calls, or
    arguments that are no JSON object.
    """
    node, _ = compiled(grammar, ids=False, calls=True).begin(tail)
    inside = node.reads == "reasoning"
    before, after = grammar.reasoning.spelling if grammar.reasoning else ("", "")
    glue = grammar.calls.spelling.glue if grammar.calls and grammar.calls.spelling else ""
    parts: list[str] = []
    index = 0
    last: type[Written] | None = None
    for kind, group in groupby(blocks, key=type):
        row = list(group)
        if inside and kind is not Reasoning:
            parts.append(after)
            inside = False
        if last is ToolCall or (last is Text and kind is ToolCall):
            parts.append(glue)
        last = kind
        calls = [block for block in row if isinstance(block, ToolCall)]
        if calls:
            parts.append(_calls(grammar, calls, index))
            index += len(calls)
        for block in row:
            match block:
                case Reasoning(text=text):
                    parts.append(text + after if inside else before + text + after)
                    inside = False
                case Text(text=text):
                    parts.append(text.join(grammar.text))
                case ToolCall():
                    pass
    return "".join(parts)


def _calls(grammar: Grammar, calls: list[ToolCall], index: int) -> str:
    spelling = grammar.calls.spelling if grammar.calls else None
    if spelling is None:
        raise ValueError("this grammar knows no tool calls: choose a family that does")
    written = [_call(spelling, call, index + n) for n, call in enumerate(calls)]
    return spelling.opener + spelling.between.join(written) + spelling.closer


def _call(spelling: Spelling, call: ToolCall, index: int) -> str:
    try:
        members = msgspec.json.decode(call.arguments or "{}", type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise ValueError(f"the arguments of {call.name!r} are no JSON object: {error}") from error
    return spelling.call.format(
        name=call.name,
        name_json=quoted(call.name),
        id=call.id,
        index=index,
        arguments=call.arguments or "{}",
        parameters="".join(_parameter(spelling, key, bytes(raw)) for key, raw in members.items()),
    )


def _parameter(spelling: Spelling, key: str, raw: bytes) -> str:
    value = msgspec.json.decode(raw)
    plain = isinstance(value, str)
    template = spelling.parameter if plain else spelling.other or spelling.parameter
    return template.format(
        key=key,
        key_json=quoted(key),
        kind=_KINDS[type(value)],
        value=value if plain else raw.decode(),
    )
