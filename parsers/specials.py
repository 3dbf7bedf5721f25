"""Control tokens inside text, unmistakable for text.

Where an engine gives token ids, a marker that is one token in the vocabulary must be recognised by
the token alone: text that merely spells it is data. So each control token that a grammar knows
becomes one lone surrogate, a character that decoded UTF-8 can never hold. Markers are spelled with
the same characters, and one lexer serves both transports. What leaves the machine is spelled out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FIRST = 0xD800
_SURROGATES = re.compile("[\ud800-\udfff]")


class Specials:
    """The control tokens of one grammar; none when the transport is text."""

    __slots__ = ("_code", "_pattern", "_table")

    def __init__(self, tokens: Iterable[str]) -> None:
        ordered = sorted(set(tokens), key=lambda token: (-len(token), token))
        self._code = {token: chr(_FIRST + n) for n, token in enumerate(ordered)}
        self._table = {ord(code): token for token, code in self._code.items()}
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")

    def __bool__(self) -> bool:
        return bool(self._code)

    def code(self, token: str) -> str:
        """The character that stands for the token; "" for one that the grammar does not know."""
        return self._code.get(token, "")

    def spell(self, marker: str) -> str:
        """A marker of the grammar as it arrives: its control tokens as characters."""
        return self._pattern.sub(lambda found: self._code[found.group()], marker)

    def restore(self, text: str) -> str:
        """Text as people read it: every control token spelled out again."""
        return text if text.isascii() else text.translate(self._table)


def clean(text: str) -> str:
    """Text without lone surrogates: they are no characters, and no encoder would take them."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return _SURROGATES.sub("\ufffd", text)
