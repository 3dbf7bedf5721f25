"""A prompt in blocks, for people: whose words stand at which tokens.

Read from the token ids themselves, so that it shows what the engine was given and needs nothing of
a template: a block begins at a control token that opens a message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from prompts.prompter import Plan, Prompter

_ROLE = re.compile(
    r"(?<![a-z])(user|assistant|system|developer|tool|observation|inst|model)", re.IGNORECASE
)
_FIRST = re.compile(r"[^\W_]+")
_LOOK = 8
"""Tokens behind an opening control token in which the role's name stands."""


class Section(Struct, frozen=True):
    """Tokens from `start` up to `end`; `text` is how they begin."""

    role: str
    start: int
    end: int
    text: str = ""


def outline(
    prompter: Prompter, plan: Plan, ids: Sequence[int], *, most: int, tokens: int
) -> tuple[list[Section], int]:
    """The last `most` blocks, and how many tokens stand before them. Of each block the text of the
    first `tokens` tokens is given.
    """
    openers = _openers(prompter, plan, ids)
    starts = [at for at, number in enumerate(ids) if number in openers]
    starts = [at for at in starts if at == 0 or ids[at - 1] not in openers]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    starts = starts[-most:]
    ends = [*starts[1:], len(ids)]
    decode = prompter.tokenizer.decode
    return [
        Section(
            _role(openers.get(ids[start], ""), decode(ids[start + 1 : min(end, start + _LOOK)])),
            start,
            end,
            decode(ids[start : min(end, start + tokens)]) if tokens else "",
        )
        for start, end in zip(starts, ends, strict=True)
        if end > start
    ], starts[0]


def _openers(prompter: Prompter, plan: Plan, ids: Sequence[int]) -> dict[int, str]:
    """Control tokens with which messages begin: the one of a reply's header, which most templates
    write before every message, or those that are named after roles.
    """
    special = prompter.tokenizer.special
    text = prompter.opening(plan)
    first = next(
        (n for n, spelling in special.items() if spelling and text.startswith(spelling)), -1
    )
    if first >= 0 and not _ROLE.search(special[first]):
        return {first: ""}
    present = set(ids)
    return {
        number: spelling
        for number, spelling in special.items()
        if number in present
        and _ROLE.search(spelling)
        and "/" not in spelling
        and "end" not in spelling.lower()
    }


def _role(spelling: str, following: str) -> str:
    if found := _ROLE.search(spelling):
        word = found[1].lower()
        return {"inst": "user", "observation": "tool", "model": "assistant"}.get(word, word)
    word = _FIRST.search(following)
    return word[0].lower() if word else "text"
