"""Calls as XML parameters: Qwen3-Coder, Nemotron 3.

    <tool_call>
    <function=forecast>
    <parameter=place>
    Oslo
    </parameter>
    </function>
    </tool_call>

A parameter's closer counts only when another parameter or the end of the function follows it:
`</parameter>` in the middle of a value is data. A function without its wrapper counts when it
names a declared tool and a parameter or its end follows. A value whose closer was forgotten ends
where a line begins with a parameter that the tool declares and that was not given yet, or with the
end of the function.
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Route, Spelling, State, combine
from parsers.grammars.think_tags import THINK

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
_NAME = r"(?P<name>[^\s<>=\"']+)"
_KEY = r"(?P<key>[^\n<>]+)"

_INSIDE: On = (
    (PARAMETER, Go("key")),
    (FUNCTION_END, Go("function_done", do=("end_call",))),
    (CLOSE, Go("closed", do=("end_call",))),
)
_AFTER: On = ((CLOSE, Go("closed")), (OPEN, Go("wrapped")))

XML_PARAMETERS = Calls(
    opens=((OPEN, Go("wrapped")), (FUNCTION, Go("bare_name"))),
    states=(
        (
            "wrapped",
            State("space", on=((FUNCTION, Go("name")), (CLOSE, Go("closed"))), tentative=True),
        ),
        (
            "name",
            State(
                "header",
                on=((">", Go(routes=(Route(_NAME, "function", do=("call",)),))),),
                barred="\n<",
                tentative=True,
            ),
        ),
        (
            "bare_name",
            State(
                "header",
                on=((">", Go(routes=(Route(_NAME, "bare_function", declared=True),))),),
                barred="\n<",
                tentative=True,
            ),
        ),
        (
            "bare_function",
            State(
                "space",
                on=(
                    (PARAMETER, Go("key", do=("call",))),
                    (FUNCTION_END, Go("function_done", do=("call", "end_call"))),
                ),
                tentative=True,
            ),
        ),
        ("function", State("skip", on=(*_INSIDE, (OPEN, Go("wrapped", do=("cut_call",)))))),
        (
            "key",
            State(
                "header",
                on=((">", Go(routes=(Route(_KEY, "value", do=("key",)),))),),
                barred="\n<",
                otherwise="broken_value",
            ),
        ),
        (
            "value",
            State(
                "value",
                on=(
                    (PARAMETER_END, Go("value_closed")),
                    ("\n" + PARAMETER, Go("next_key")),
                    ("\n" + FUNCTION_END, Go("function_closed")),
                ),
                trim="newlines",
            ),
        ),
        (
            "next_key",
            State(
                "header",
                on=(
                    (">", Go(routes=(Route(_KEY, "value", ("end_value", "key"), declared=True),))),
                ),
                barred="\n<",
                tentative=True,
            ),
        ),
        (
            "function_closed",
            State(
                "space",
                on=((CLOSE, Go("closed", do=("end_value", "end_call"))),),
                tentative=True,
                at_end=("end_value", "end_call"),
            ),
        ),
        (
            "value_closed",
            State(
                "space",
                on=(
                    (PARAMETER, Go("key", do=("end_value",))),
                    *_INSIDE[1:],
                    (OPEN, Go("wrapped", do=("end_value", "cut_call"))),
                ),
                tentative=True,
            ),
        ),
        ("broken_value", State("skip", on=((PARAMETER_END, Go("function")), *_INSIDE))),
        ("function_done", State("space", on=(*_AFTER, (FUNCTION, Go("name"))))),
        ("closed", State("space", on=(*_AFTER, (FUNCTION, Go("bare_name"))), otherwise="text")),
    ),
    spelling=Spelling(
        call="<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>",
        parameter="<parameter={key}>\n{value}\n</parameter>\n",
        between="\n",
        style="qwen_xml",
    ),
)

GRAMMARS = {"qwen3_coder": combine(THINK, XML_PARAMETERS)}
