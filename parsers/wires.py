"""How a grammar's calls, text and thoughts are spelled, taken apart for a constraint.

Everything here is read off the spelling of the grammar; nothing is spelled a second time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from parsers.compiled import compiled
from parsers.grammar import Calls, Grammar


class Wire(Struct, frozen=True):
    """A call is `begin` (`{name}` stands for the tool), its arguments, `end`; where the syntax
    numbers its calls, a number and `numbered` follow `begin`. The arguments are in `style`, a
    content style of xgrammar, or, where it has none, one `parameter` element (begin with `{key}`,
    end) each, or JSON. Calls stand between `opener` and `closer`, `between` them.

    `trigger` is how a call or its section starts. Free text may not hold it when calls are
    forbidden, unless calls are `bare`. `text` are the marks around visible text, which stands
    before calls (`first`) or in their place (`instead`). `thoughts` are the marks around a thought
    and what follows it; the first is empty where the prompt has opened the thought, all are where
    it has closed it. `last` ends the whole message.
    """

    begin: str = ""
    end: str = ""
    trigger: str = ""
    style: str = ""
    parameter: tuple[str, str] = ("", "")
    numbered: str = ""
    opener: str = ""
    closer: str = ""
    between: str = ""
    bare: bool = False
    text: tuple[str, str] = ("", "")
    text_stands: Literal["free", "first", "instead"] = "free"
    thoughts: tuple[str, str, str] = ("", "", "")
    last: str = ""


def wire(grammar: Grammar, tail: str) -> Wire:
    """The wire of a grammar behind a prompt with this tail."""
    begin, end = grammar.text
    if begin and tail.rstrip().endswith(begin):
        begin = ""  # the prompt has opened the answer
    stands: Literal["free", "first", "instead"] = "free"
    if grammar.text[0]:
        stands = "instead" if grammar.whole else "first"
    return replace(
        _spelled(grammar.calls),
        text=(begin, end if stands == "first" else ""),
        text_stands=stands,
        thoughts=_thoughts(grammar, tail),
        last=grammar.last,
    )


@lru_cache(maxsize=256)
def _spelled(calls: Calls | None) -> Wire:
    spelling = calls.spelling if calls is not None else None
    if calls is None or spelling is None:
        return Wire()
    body = "{parameters}" if "{parameters}" in spelling.call else "{arguments}"
    before, _, end = spelling.call.partition(body)
    before, number, numbered = before.partition("{index}")
    begin = before.replace("{name_json}", '"{name}"').replace("{{", "{")
    first = spelling.opener or begin
    marks = [mark for mark, go in calls.opens if first.startswith(mark) and not go.first]
    opened, _, closed = spelling.parameter.partition("{value}")
    elements = body == "{parameters}" and not spelling.style
    return Wire(
        begin=begin,
        end=end.replace("}}", "}"),
        numbered=numbered if number else "",
        opener=spelling.opener,
        closer=spelling.closer,
        between=spelling.between,
        trigger=marks[0] if marks else first.partition("{name}")[0],
        bare=not marks and bool(calls.opens),
        style=spelling.style,
        parameter=(opened, closed) if elements else ("", ""),
    )


def _thoughts(grammar: Grammar, tail: str) -> tuple[str, str, str]:
    reasoning = grammar.reasoning
    if reasoning is None:
        return "", "", ""
    node, at_mark = compiled(grammar, ids=False, calls=True).begin(tail)
    closer = reasoning.closers[0]
    after = reasoning.spelling[1].partition(closer)[2]
    if node.reads == "reasoning":
        return "", closer, after
    opened = tail and at_mark and node.name == "text"
    lead = reasoning.spelling[0].partition(reasoning.openers[0])[0]
    return ("", "", "") if opened else (lead + reasoning.openers[0], closer, after)
