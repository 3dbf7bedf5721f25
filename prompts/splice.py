"""Remembered replies, put back in place of a re-rendering.

What is remembered of a reply is the ids from its header on: the end of the prompt that opened it,
and all that was generated. Put back, they make prompt(n) + output(n) the beginning of
prompt(n + 1), token for token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct

from prompts.guard import HOLE
from prompts.template import ChatTemplate, TemplateError
from prompts.traits import Message, Traits

_SLOT = f"{HOLE}r{HOLE}"


class Header(Struct, frozen=True):
    """How a template opens a reply.

    `text` begins the opening of a reply and every reply in the history; where it is empty, `lead`
    stands before a reply's content in the history. `opening` is the end of a prompt.
    """

    text: str
    lead: str
    opening: str


class Remembered(Struct, frozen=True):
    """What stands for a reply in the rendered text, and the ids to put in its place."""

    mark: str
    ids: Sequence[int]


def mark(number: int) -> str:
    """What stands in the content of a reply that will be replaced."""
    return f"{HOLE}m{number}{HOLE}"


def spliced(
    text: str, remembered: Sequence[Remembered], header: Header, stops: Mapping[str, int]
) -> list[str | Sequence[int]] | None:
    """The text in pieces, with ids where replies stood; None if one cannot be found for sure.

    Ids that end the turn take the place of the template's own end of it.
    """
    spelled = "|".join(map(re.escape, stops)) or r"(?!)"
    one_end, ends = re.compile(spelled), re.compile(f"(?:{spelled})+")
    pieces: list[str | Sequence[int]] = []
    start = 0
    for one in remembered:
        at = text.find(one.mark, start)
        cut = _opening(text, header, start, at)
        # the first end of a turn that the template wrote: guarded text spells none
        stop = ends.search(text, at) if at >= 0 else None
        if stop is None or cut < 0:
            return None
        ids = one.ids
        end = stop.start()
        if any(ids[-1] == stops[spelling] for spelling in one_end.findall(stop[0])):
            end = stop.end()
        elif ids[-1] in stops.values():
            ids = ids[:-1]
        pieces += [text[start:cut], ids]
        start = end
    pieces.append(text[start:])
    return pieces


def _opening(text: str, header: Header, start: int, at: int) -> int:
    if header.text:
        return text.rfind(header.text, start, at)
    return at - len(header.lead) if text.endswith(header.lead, start, at) else -1


def header_of(
    template: ChatTemplate, traits: Traits, arguments: Mapping[str, Any], controls: re.Pattern[str]
) -> Header | None:
    """The reply header of a template; None where replies cannot be told from what is around them.

    It must begin with a control token, for only there tokenisation starts afresh.
    """
    asked, told = (
        _shaped(role, text, traits) for role, text in (("user", "x"), ("assistant", _SLOT))
    )
    try:
        base = template.render([asked], generate=False, arguments=arguments)
        opened = template.render([asked], arguments=arguments)
        replied = template.render([asked, told], generate=False, arguments=arguments)
    except TemplateError:
        return None
    written, slot, _ = replied.partition(_SLOT)
    if not slot or not opened.startswith(base) or not written.startswith(base):
        return None
    opening, lead = opened[len(base) :], written[len(base) :]
    text = _first_control(_common(opening, lead), controls)
    if text:
        return Header(text, "", opening)
    clean = not opening and _ends_with_control(base, controls)
    return Header("", lead, "") if clean else None


def _shaped(role: str, text: str, traits: Traits) -> Message:
    return {"role": role, "content": [{"type": "text", "text": text}] if traits.parts else text}


def _first_control(text: str, controls: re.Pattern[str]) -> str:
    """The text up to its second control token, "" if it does not begin with one.

    Behind a second one stands what differs from reply to reply, such as an empty think block.
    """
    found = [match.span() for match in controls.finditer(text)]
    if not found or found[0][0] != 0:
        return ""
    return text[: found[1][0]] if len(found) > 1 else text


def _ends_with_control(text: str, controls: re.Pattern[str]) -> bool:
    return any(match.end() == len(text) for match in controls.finditer(text))


def _common(left: str, right: str) -> str:
    same = (one == other for one, other in zip(left, right, strict=False))
    return left[: sum(takewhile(bool, same))]
