"""Grammars: one file per wire syntax, and the names under which they are combined.

A family names a way to reason and a way to call, `think + xml_parameters`; either side may be
absent: `think`, `json_in_tags`, `plain`.
"""

from __future__ import annotations

from functools import lru_cache

from parsers.grammar import Calls, Grammar, Reasoning, combine
from parsers.grammars.json_in_tags import JSON_IN_TAGS
from parsers.grammars.think_tags import THINK
from parsers.grammars.xml_parameters import XML_PARAMETERS

REASONINGS: dict[str, Reasoning] = {"think": THINK}
CALLS: dict[str, Calls] = {"json_in_tags": JSON_IN_TAGS, "xml_parameters": XML_PARAMETERS}
WHOLE: dict[str, Grammar] = {"plain": combine(None, None)}


@lru_cache(maxsize=256)
def named(name: str, *, special: tuple[str, ...] = ()) -> Grammar:
    """The grammar of that name. `special`: strings that are one control token in the family.

    Raises KeyError with the known names for an unknown one.
    """
    if name in WHOLE:
        return WHOLE[name]
    reasoning: Reasoning | None = None
    calls: Calls | None = None
    for part in name.split("+"):
        word = part.strip()
        if word in REASONINGS:
            reasoning = REASONINGS[word]
        elif word in CALLS:
            calls = CALLS[word]
        else:
            known = ", ".join(sorted([*REASONINGS, *CALLS, *WHOLE]))
            raise KeyError(f"unknown grammar {word!r}; known: {known}")
    return combine(reasoning, calls, special=special)
