"""Seed-OSS: Qwen3-Coder's parameters between its own marks."""

from __future__ import annotations

from msgspec.structs import replace

from parsers.grammar import Calls, On, combine
from parsers.grammars.think_variants import SEED
from parsers.grammars.xml_parameters import CLOSE, OPEN, XML_PARAMETERS

_MARKS = {OPEN: "<seed:tool_call>", CLOSE: "</seed:tool_call>"}


def between(calls: Calls, marks: dict[str, str]) -> Calls:
    """The same syntax between other marks."""

    def on(ways: On) -> On:
        return tuple((marks.get(mark, mark), go) for mark, go in ways)

    spelling = calls.spelling
    if spelling is not None:
        call = spelling.call
        for mark, other in marks.items():
            call = call.replace(mark, other)
        spelling = replace(spelling, call=call)
    return replace(
        calls,
        opens=on(calls.opens),
        states=tuple((name, replace(state, on=on(state.on))) for name, state in calls.states),
        spelling=spelling,
    )


GRAMMARS = {"seed_oss": combine(SEED, between(XML_PARAMETERS, _MARKS))}
