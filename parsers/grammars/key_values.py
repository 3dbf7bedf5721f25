"""Calls as pairs of key and value elements: GLM 4.5 to 5.

<tool_call>forecast
<arg_key>place</arg_key>
<arg_value>Oslo</arg_value>
</tool_call>

GLM 4.5 puts each element on a line of its own, 4.7 writes no newlines: neither belongs to a value.
In text a value's closer counts when a key or the end of the call follows.
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Reasoning, Route, Spelling, State, States, combine

OPEN, CLOSE = "<tool_call>", "</tool_call>"
KEY, KEY_END = "<arg_key>", "</arg_key>"
VALUE, VALUE_END = "<arg_value>", "</arg_value>"
_NAMED = r"(?P<name>[^\s<>{}]+)"
_FOLLOWS: On = (
    (KEY, Go("key", do=("end_value",))),
    (CLOSE, Go("call_closed", do=("end_value", "end_call"))),
    (OPEN, Go("name", do=("end_value", "cut_call"))),
)


_STATES: States = (
    (
        "name",
        State(
            "header",
            on=(
                (KEY, Go(routes=(Route(_NAMED, "key", do=("call",)),))),
                (CLOSE, Go(routes=(Route(_NAMED, "call_closed", do=("call", "end_call")),))),
            ),
            tentative=True,
        ),
    ),
    (
        "key",
        State(
            "header",
            on=((KEY_END, Go(routes=(Route(r"(?P<key>[^<>]+)", "before_value"),))),),
            otherwise="lost",
        ),
    ),
    ("before_value", State("space", on=((VALUE, Go("value", do=("key",))),), otherwise="lost")),
    ("value", State("value", on=((VALUE_END, Go("value_closed")), (CLOSE, Go("unclosed"))))),
    ("value_closed", State("space", on=_FOLLOWS, tentative=True)),
    (
        "unclosed",
        State(
            "space",
            on=((OPEN, Go("name", do=("end_value", "end_call"))),),
            tentative=True,
            at_end=("end_value", "end_call"),
        ),
    ),
    (
        "lost",
        State("skip", on=((KEY, Go("key")), (CLOSE, Go("call_closed", do=("cut_call",))))),
    ),
    (
        "call_closed",
        State("space", on=((OPEN, Go("name")), (CLOSE, Go("call_closed"))), otherwise="text"),
    ),
)


def pairs(newline: str) -> Calls:
    """`newline`: what the template writes behind each element."""
    return Calls(
        opens=((OPEN, Go("name")),),
        states=_STATES,
        spelling=Spelling(
            call=f"{OPEN}{{name}}{newline}{{parameters}}{CLOSE}",
            parameter=f"{KEY}{{key}}{KEY_END}{newline}{VALUE}{{value}}{VALUE_END}{newline}",
            between=newline,
            glue=newline,
            style="glm_xml",
        ),
    )


GLM45_THINK = Reasoning(
    openers=("<think>",), closers=("</think>",), spelling=("\n<think>", "</think>\n")
)
GLM47_THINK = Reasoning(
    openers=("<think>",),
    closers=("</think>",),
    unknown="reasoning",
    spelling=("<think>", "</think>"),
)

GRAMMARS = {
    "glm45": combine(GLM45_THINK, pairs("\n")),
    "glm47": combine(GLM47_THINK, pairs("")),
}
