"""Calls that an engine was forced to write as bare JSON.

Where a tool must be called and the family's markers are not part of the constraint, engines write
an array of calls (`required`) or one tool's arguments alone (`named`). Both are read in addition
to the family's own syntax, and only where the visible text begins.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from parsers.grammar import Go, Grammar, On, State, States
from turns.turn import ToolChoice


@lru_cache(maxsize=256)
def guided(grammar: Grammar, mode: str) -> Grammar:
    """The grammar with bare JSON in its text, for `required` or `named`; itself for other modes."""
    if mode not in _ADDED or grammar.whole or not grammar.calls:
        return grammar
    opens, states = _ADDED[mode]
    known = tuple(
        (name, replace(state, on=(*state.on, *opens)) if name == grammar.start else state)
        for name, state in grammar.states
    )
    return replace(grammar, states=(*known, *states))


def forced(choice: ToolChoice) -> str:
    """The name of the only tool that may be called; "" when there is a choice."""
    return choice.name if choice.mode == "named" else ""


_REQUIRED: States = (
    (
        "guided_list",
        State("space", on=(("{", Go("guided_call", keep=True)),), tentative=True),
    ),
    ("guided_call", State("reader", reader="bare_json_call", tentative=True, then="guided_next")),
    (
        "guided_next",
        State("space", on=((",", Go("guided_list")), ("]", Go("guided_done"))), otherwise="text"),
    ),
    ("guided_done", State("space", otherwise="text")),
)
_NAMED: States = (
    (
        "guided_arguments",
        State("reader", reader="named_arguments", then="guided_done", otherwise="guided_junk"),
    ),
    ("guided_done", State("space", otherwise="text")),
    ("guided_junk", State("skip")),
)
_ADDED: dict[str, tuple[On, States]] = {
    "required": (
        (
            ("[", Go("guided_list", first=True, calls=True)),
            ("{", Go("guided_call", first=True, keep=True, calls=True)),
        ),
        _REQUIRED,
    ),
    "named": (
        (("{", Go("guided_arguments", first=True, keep=True, calls=True)),),
        _NAMED,
    ),
}
