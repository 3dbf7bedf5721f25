"""Calls as one JSON array behind a marker: Nemotron's <TOOLCALL>, Granite 3, phi's functools.

<TOOLCALL>[{"name": "forecast", "arguments": {"place": "Oslo"}}]</TOOLCALL>
"""

from __future__ import annotations

from parsers.grammar import Calls, Go, On, Spelling, State, combine
from parsers.grammars.think_tags import THINK
from parsers.grammars.think_variants import GRANITE

_ITEM = '{{"name": {name_json}, "arguments": {arguments}}}'


def arrays(*openers: str, closer: str, closed: bool = False) -> Calls:
    """Calls in an array behind any of the openers. A closer is swallowed; `closed`: it is due."""
    ends: On = ((closer, Go("array_closed")),)
    again: On = (*ends, *((opener, Go("array_opened")) for opener in openers))
    opens: On = tuple((opener, Go("array_opened")) for opener in openers)
    items: On = (("[", Go("array", keep=True)), ("{", Go("rows", keep=True)))
    return Calls(
        opens=opens,
        states=(
            ("array_opened", State("space", on=(*items, *ends), tentative=True)),
            ("array", State("reader", reader="json_calls", then="array_read", otherwise="cut")),
            ("rows", State("reader", reader="json_rows", then="array_read", otherwise="cut")),
            ("array_read", State("space", on=again, otherwise="text")),
            ("array_closed", State("space", on=again, otherwise="text")),
            ("cut", State("skip", on=again)),
        ),
        spelling=Spelling(
            call=_ITEM,
            opener=openers[0] + "[",
            between=", ",
            closer="]" + (closer if closed else ""),
        ),
    )


NEMOTRON = arrays("<TOOLCALL>", closer="</TOOLCALL>", closed=True)
# Granite 3.1 writes its tag as plain text, 3.0 with the pipes of a special token.
GRANITE_ARRAY = arrays("<|tool_call|>", "<tool_call>", closer="</tool_call>")
PHI = arrays("functools", "<|tool_call|>", closer="<|/tool_call|>")

GRAMMARS = {
    "nemotron_deci": combine(THINK, NEMOTRON),
    "granite3": combine(GRANITE, GRANITE_ARRAY),
    "phi4_mini": combine(None, PHI),
}
