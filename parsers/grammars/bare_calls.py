"""Calls without marks: Llama's JSON objects and Python lists.

    {"name": "forecast", "parameters": {"place": "Oslo"}}
    [forecast(place="Oslo"), clock()]

Without marks only a declared tool's name makes a call, and only where a line begins with it.
<|python_tag|> and <|python_start|> are marks: behind them any name will do.
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Spelling, State, States, combine

TAG, START, END = "<|python_tag|>", "<|python_start|>", "<|python_end|>"
_AGAIN: On = ((TAG, Go("tagged")), (START, Go("tagged")), (END, Go("untagged")))
_READ = "calls_read"

_STATES: States = (
    (
        "tagged",
        State(
            "space",
            on=(("{", Go("rows", keep=True)), ("[", Go("list", keep=True)), (END, Go("untagged"))),
            tentative=True,
        ),
    ),
    ("rows", State("reader", reader="json_rows", then=_READ, otherwise="cut")),
    ("list", State("reader", reader="python_calls", then=_READ, otherwise="cut")),
    (
        "bare_rows",
        State("reader", reader="bare_json_rows", then=_READ, otherwise="cut", tentative=True),
    ),
    (
        "bare_list",
        State("reader", reader="bare_python_calls", then=_READ, otherwise="cut", tentative=True),
    ),
    (
        _READ,
        State(
            "space",
            on=(
                *_AGAIN,
                ("{", Go("bare_rows", keep=True)),
                ("[", Go("bare_list", keep=True)),
                (";", Go(_READ)),
            ),
        ),
    ),
    ("untagged", State("space", on=_AGAIN, otherwise="text")),
    ("cut", State("skip", on=_AGAIN)),
)
_OBJECT = '{{"name": {name_json}, "parameters": {arguments}}}'

_OBJECTS: On = (
    ("{", Go("bare_rows", first=True, keep=True)),
    ("\n{", Go("bare_rows", keep=True)),
)
_LISTS: On = (
    ("[", Go("bare_list", first=True, keep=True)),
    ("\n[", Go("bare_list", keep=True)),
)
LLAMA_JSON = Calls(
    opens=(*_AGAIN, *_OBJECTS),
    states=_STATES,
    spelling=Spelling(call=_OBJECT, between="; "),
)
PYTHONIC = Calls(
    opens=(*_AGAIN, *_OBJECTS, *_LISTS),
    states=_STATES,
    spelling=Spelling(call=_OBJECT, between="; "),
)

GRAMMARS = {
    "llama3_json": combine(None, LLAMA_JSON),
    "llama4_pythonic": combine(None, PYTHONIC),
}
