"""Calls as invoke elements with named parameters: MiniMax, DeepSeek's DSML, Step 3.

    <minimax:tool_call>
    <invoke name="forecast">
    <parameter name="place">Oslo</parameter>
    </invoke>
    </minimax:tool_call>

Values are verbatim: the template puts nothing around them. Where the marks are control tokens a
closer always closes; where they are text, it closes when a parameter or the end follows it. One
bad invoke is skipped and touches no other.
"""

from __future__ import annotations

from msgspec import Struct

from parsers.grammar import Calls, Go, On, Reasoning, Route, Spelling, State, States, combine
from parsers.grammars.think_tags import THINK

_NAME = r'name="(?P<name>[^"]+)"'
_KEY = r'name="(?P<key>[^"]+)"(\s+string="(?P<kind>true|false)")?'


class Marks(Struct, frozen=True):
    """How a family spells the elements. `before` and `after` stand around each invoke.

    `tokens`: the marks are made of control tokens.
    """

    section: str
    section_end: str
    invoke: str
    invoke_end: str
    parameter: str
    parameter_end: str
    before: str = ""
    after: str = ""
    tokens: bool = False


def invokes(marks: Marks, spelling: Spelling) -> Calls:
    """The states of such a syntax."""
    more: States = ()
    inside: On = (
        (marks.parameter, Go("parameter")),
        (marks.invoke_end, Go("invoked", do=("end_call",))),
        (marks.section_end, Go("section_closed", do=("end_call",))),
        (marks.invoke, Go("invoke", do=("cut_call",))),
    )
    closed = Go("invoke_body", do=("end_value",)) if marks.tokens else Go("value_closed")
    between: On = (
        (marks.invoke, Go("invoke")),
        (marks.section_end, Go("section_closed")),
        (marks.section, Go("section")),
    )
    header = State("header", barred="<", otherwise="bad_invoke")
    noise = bool(marks.before or marks.after)
    strays: On = (
        (marks.invoke_end, Go("invoked")),
        (marks.parameter_end, Go("invoked")),
    )
    opens: On = ((marks.section, Go("section")), (marks.invoke, Go("bare_invoke")))
    if marks.tokens:  # a control token without its partner is no text
        opens = (*opens, (marks.section_end, Go("section_closed")), *strays)
    else:
        more = (("value_closed", State("space", on=_ended(inside), tentative=True)),)
    return Calls(
        opens=opens,
        states=(
            ("section", State("skip", on=between) if noise else _certain(between)),
            ("invoke", _on(header, _named("invoke_body"))),
            ("bare_invoke", _on(header, _named("bare_body", bare=True), tentative=True)),
            ("bare_body", State("space", on=_bare(inside), tentative=True)),
            ("invoke_body", State("skip", on=inside)),
            ("parameter", State("header", on=((">", _KEYED),), barred="<", otherwise="bad_value")),
            ("value", State("value", on=((marks.parameter_end, closed),))),
            ("bad_value", State("skip", on=((marks.parameter_end, Go("invoke_body")), *inside))),
            ("bad_invoke", State("skip", on=((marks.invoke_end, Go("invoked")), *between))),
            ("invoked", State("skip" if noise else "space", on=(*between, *strays))),
            ("section_closed", State("space", on=(*between[1:], *strays))),
            *more,
        ),
        spelling=spelling,
    )


_KEYED = Go(routes=(Route(_KEY, "value", do=("key",)),))


def _certain(between: On) -> State:
    """Behind a section's mark in text: it is one when an invoke follows."""
    return State("space", on=between[:2], tentative=True)


def _named(to: str, *, bare: bool = False) -> Go:
    if bare:
        return Go(routes=(Route(_NAME, to, declared=True),))
    empty = Route(_NAME + r"\s*/", "invoked", do=("call", "end_call"))
    return Go(routes=(empty, Route(_NAME, to, do=("call",))))


def _on(header: State, go: Go, *, tentative: bool = False) -> State:
    return State(
        header.reads,
        on=((">", go),),
        barred=header.barred,
        otherwise=header.otherwise,
        tentative=tentative,
    )


def _bare(inside: On) -> On:
    """Behind an invoke without its section: the call is one once its inside begins."""
    return tuple((mark, Go(go.to, do=("call", *go.do))) for mark, go in inside[:2])


def _ended(inside: On) -> On:
    """Behind a closer in text: what must follow for it to have closed the value."""
    return tuple((mark, Go(go.to, do=("end_value", *go.do))) for mark, go in inside)


def spelled(marks: Marks, *, glue: str, style: str = "", kinds: bool = False) -> Spelling:
    """How such calls are written; `kinds`: each value says whether it is a string."""
    one = f'{marks.parameter} name="{{key}}"%s>{{value}}{marks.parameter_end}\n'
    return Spelling(
        call=f'{marks.before}{marks.invoke} name="{{name}}">\n{{parameters}}'
        f"{marks.invoke_end}{marks.after}\n",
        parameter=one % (' string="true"' if kinds else ""),
        other=one % (' string="false"' if kinds else ""),
        opener=marks.section + "\n",
        closer=marks.section_end,
        glue=glue,
        style=style,
    )


def dsml(word: str, space: str = "") -> Calls:
    """DeepSeek's DSML: `word` is what it calls a section, `space` what follows its token."""
    token = f"｜DSML｜{space}"
    marks = Marks(
        section=f"<{token}{word}>",
        section_end=f"</{token}{word}>",
        invoke=f"<{token}invoke",
        invoke_end=f"</{token}invoke>",
        parameter=f"<{token}parameter",
        parameter_end=f"</{token}parameter>",
        tokens=True,
    )
    style = "deepseek_v4_1_xml" if space else "deepseek_xml"
    return invokes(marks, spelled(marks, glue="\n\n", style=style, kinds=True))


_MINIMAX = Marks(
    section="<minimax:tool_call>",
    section_end="</minimax:tool_call>",
    invoke="<invoke",
    invoke_end="</invoke>",
    parameter="<parameter",
    parameter_end="</parameter>",
)
MINIMAX = invokes(_MINIMAX, spelled(_MINIMAX, glue="\n", style="minimax_xml"))

_STEP = Marks(
    section="<｜tool_calls_begin｜>",
    section_end="<｜tool_calls_end｜>",
    invoke="<steptml:invoke",
    invoke_end="</steptml:invoke>",
    parameter="<steptml:parameter",
    parameter_end="</steptml:parameter>",
    before="<｜tool_call_begin｜>function<｜tool_sep｜>",
    after="<｜tool_call_end｜>",
)
STEP = invokes(_STEP, spelled(_STEP, glue="\n"))

_ALWAYS = Reasoning(
    openers=THINK.openers,
    closers=THINK.closers,
    unknown="reasoning",
    spelling=THINK.spelling,
)
_TIGHT = Reasoning(openers=THINK.openers, closers=THINK.closers, spelling=("<think>", "</think>"))

GRAMMARS = {
    "minimax_m2": combine(_ALWAYS, MINIMAX),
    "step3": combine(_ALWAYS, STEP),
    "deepseek_v3_2": combine(_TIGHT, dsml("function_calls")),
    "deepseek_v4": combine(_TIGHT, dsml("tool_calls")),
    "deepseek_v4_1": combine(_TIGHT, dsml("calls", " ")),
}
