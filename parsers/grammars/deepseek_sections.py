"""Calls in sections of DeepSeek's own tokens: V3 and R1 with a fenced body, V3.1 without.

<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>forecast
```json
{"place": "Oslo"}
```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

The word before the separator tells them apart: V3 writes the call's type there, V3.1 its name.
Either family reads both.
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Reasoning, Route, Spelling, State, combine
from parsers.grammars.json_body import json_body
from parsers.grammars.think_tags import THINK

BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, CALL_END, SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
_NAMED = r"(?P<name>[^\s`{}]+)"
_ARGUMENTS = Route(_NAMED, "arguments", do=("call",))
_NEXT: On = ((BEGIN, Go("section")), (CALL, Go("type")), (END, Go("section_closed")))


def sections(spelling: Spelling) -> Calls:
    return Calls(
        opens=_NEXT,
        states=(
            ("section", State("skip", on=_NEXT)),
            (
                "type",
                State(
                    "header",
                    on=(
                        (
                            SEP,
                            Go(
                                routes=(
                                    _declared("function"),
                                    Route("function|", "fenced"),
                                    _ARGUMENTS,
                                )
                            ),
                        ),
                        *_NEXT,
                    ),
                    otherwise="section",
                ),
            ),
            (
                "fenced",
                State(
                    "header",
                    on=(
                        ("```json", Go(routes=(_ARGUMENTS,))),
                        ("```", Go(routes=(_ARGUMENTS,))),
                        ("{", Go(routes=(_ARGUMENTS,), keep=True)),
                        (CALL_END, Go(routes=(Route(_NAMED, "section", do=("call", "end_call")),))),
                        *_NEXT,
                    ),
                    otherwise="section",
                ),
            ),
            *json_body("arguments", then="section", otherwise="section", ends=(CALL_END,)),
            ("section_closed", State("space", on=_NEXT, otherwise="text")),
        ),
        spelling=spelling,
    )


def _declared(name: str) -> Route:
    """A tool that is really called like the type word."""
    return Route(f"(?P<name>{name})", "arguments", do=("call",), declared=True)


V3 = sections(
    Spelling(
        call=f"{CALL}function{SEP}{{name}}\n```json\n{{arguments}}\n```{CALL_END}",
        opener=BEGIN,
        between="\n",
        closer=END,
        glue="",
    )
)
V3_1 = sections(
    Spelling(call=f"{CALL}{{name}}{SEP}{{arguments}}{CALL_END}", opener=BEGIN, closer=END, glue="")
)
_TIGHT = Reasoning(openers=THINK.openers, closers=THINK.closers, spelling=("<think>", "</think>"))

GRAMMARS = {"deepseek_v3": combine(THINK, V3), "deepseek_v3_1": combine(_TIGHT, V3_1)}
