"""Calls as JSON between tags: Hermes, Qwen 2.5 and 3, Granite 4, SmolLM2.

<tool_call>
{"name": "forecast", "arguments": {"place": "Oslo"}}
</tool_call>
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, Spelling, State, combine
from parsers.grammars.think_tags import THINK

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_ON = ((OPEN, Go("tool")), (CLOSE, Go("tool_closed")))

JSON_IN_TAGS = Calls(
    opens=((OPEN, Go("tool")),),
    states=(
        (
            "tool",
            State(
                "space",
                on=(
                    ("{", Go("tool_json", keep=True)),
                    ("[", Go("tool")),
                    (CLOSE, Go("tool_closed")),
                ),
                tentative=True,
            ),
        ),
        (
            "tool_json",
            State(
                "reader",
                reader="json_call",
                then="tool_done",
                otherwise="tool_cut",
                lost="tool_lost",
                ends=(CLOSE,),
            ),
        ),
        (
            "tool_done",
            State(
                "space",
                on=(
                    *_ON,
                    ("{", Go("tool_json", keep=True)),
                    ("}", Go("tool_done")),
                    ("]", Go("tool_done")),
                    (",", Go("tool_done")),
                ),
                otherwise="tool_lost",
            ),
        ),
        ("tool_cut", State("skip", on=_ON)),
        ("tool_lost", State("text", on=_ON)),
        ("tool_closed", State("space", on=_ON, otherwise="text")),
    ),
    spelling=Spelling(
        call='<tool_call>\n{{"name": {name_json}, "arguments": {arguments}}}\n</tool_call>',
        between="\n",
    ),
)

GRAMMARS = {"hermes": combine(THINK, JSON_IN_TAGS)}
