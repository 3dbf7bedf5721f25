"""Mistral's calls: a JSON array behind one marker before v11, since then one marker a call.

[TOOL_CALLS] [{"name": "forecast", "arguments": {"place": "Oslo"}}]
[TOOL_CALLS]forecast[ARGS]{"place": "Oslo"}[TOOL_CALLS]clock[ARGS]{}
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Route, Spelling, State, combine
from parsers.grammars.json_body import json_body
from parsers.grammars.think_variants import MISTRAL

CALLS_MARK, ARGS, CALL_ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
_NAMED = r"(?P<name>[^\s\[\]{}]+)"
_ARGUMENTS = Go(routes=(Route(_NAMED, "arguments", do=("call",)),))
_AGAIN: On = ((CALLS_MARK, Go("call_name")),)
_STATES = (
    (
        "call_name",
        State(
            "header",
            on=(
                (ARGS, _ARGUMENTS),
                (CALL_ID, Go(routes=(Route(_NAMED, "call_id"),))),
                ("{", Go(routes=(Route("", "rows"), *_ARGUMENTS.routes), keep=True)),
                ("[", Go(routes=(Route("", "array"),), keep=True)),
                *_AGAIN,
            ),
            barred="\n",
            tentative=True,
        ),
    ),
    (
        "call_id",
        State(
            "header",
            on=((ARGS, Go(routes=(Route(r"(?P<id>\w+)", "arguments", do=("call",)),))), *_AGAIN),
            otherwise="cut",
        ),
    ),
    *json_body("arguments", then="calls_read", otherwise="cut", ends=(CALLS_MARK,)),
    ("array", State("reader", reader="json_calls", then="calls_read", otherwise="cut")),
    ("rows", State("reader", reader="json_rows", then="calls_read", otherwise="cut")),
    ("calls_read", State("space", on=_AGAIN, otherwise="text")),
    ("cut", State("skip", on=_AGAIN)),
)

V11 = Calls(
    opens=_AGAIN,
    states=_STATES,
    spelling=Spelling(call=f"{CALLS_MARK}{{name}}{ARGS}{{arguments}}", glue=""),
    ids="nine",
)
V3 = Calls(
    opens=_AGAIN,
    states=_STATES,
    spelling=Spelling(
        call='{{"name": {name_json}, "arguments": {arguments}}}',
        opener=f"{CALLS_MARK} [",
        between=", ",
        closer="]",
        glue="",
    ),
    ids="nine",
)

GRAMMARS = {"mistral": combine(MISTRAL, V11), "mistral_v3": combine(None, V3)}
