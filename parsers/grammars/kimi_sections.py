"""Calls in sections of Kimi K2's tokens. The id carries the name and is kept: templates replay it.

<|tool_calls_section_begin|><|tool_call_begin|>functions.forecast:0<|tool_call_argument_begin|>
{"place": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>

A section ends reasoning without its closer. Text between the marks of a section is noise. An id
that the model imitated from a foreign history names no tool: such a call is dropped unless its
body is a whole call itself.
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Reasoning, Route, Spelling, State, combine
from parsers.grammars.json_body import json_body
from parsers.grammars.think_tags import THINK

BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, ARGUMENT, CALL_END = (
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
)
_IDS = (
    Route(r"(?P<id>(?:functions\.)?(?P<name>[^\s:]+):\d+)", "arguments", do=("call",)),
    Route(r"(?:functions\.)?(?P<name>[^\s:]+)", "arguments", do=("call",), declared=True),
    Route(r".*", "whole_call"),
)
_NEXT: On = (
    (CALL, Go("id")),
    (END, Go("section_closed")),
    ("<|tool_call_section_end|>", Go("section_closed")),
)
_BEGIN: On = ((BEGIN, Go("section")), ("<|tool_call_section_begin|>", Go("section")))

KIMI = Calls(
    opens=(*_BEGIN, *_NEXT),
    states=(
        ("section", State("skip", on=(*_NEXT, *_BEGIN))),
        (
            "id",
            State("header", on=((ARGUMENT, Go(routes=_IDS)), *_NEXT, (CALL_END, Go("section")))),
        ),
        *json_body("arguments", then="section", otherwise="section", ends=(CALL_END,)),
        (
            "whole_call",
            State(
                "reader",
                reader="bare_json_call",
                then="section",
                otherwise="section",
                lost="section",
            ),
        ),
        ("section_closed", State("space", on=(*_BEGIN, *_NEXT[1:]), otherwise="text")),
    ),
    spelling=Spelling(
        call=f"{CALL}functions.{{name}}:{{index}}{ARGUMENT}{{arguments}}{CALL_END}",
        opener=BEGIN,
        closer=END,
        glue="",
    ),
)
KIMI_THINK = Reasoning(
    openers=THINK.openers,
    closers=THINK.closers,
    ended_by_calls=True,
    spelling=("<think>", "</think>"),
)

GRAMMARS = {"kimi_k2": combine(KIMI_THINK, KIMI)}
