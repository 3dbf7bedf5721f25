"""Guards: a control token can only come from the template.

Text from outside that spells a control token gets an invisible mark inside the spelling before
the template sees it; the encoder finds control tokens while the marks are in place, then takes
them out, so that guarded text is tokenised as the ordinary text it is. Text that spells nothing is
passed on untouched: a template that strips, splits or compares it behaves as its author meant.

Templates also glue: `<` + a schema key + `>` may spell what none of the pieces does. Text whose
edge could be one end of a control token, or which is exactly the inside of one, is marked there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

MARK = "\ufdd0"
"""Stands inside a guarded spelling. A Unicode noncharacter: no text has it by right."""
HOLE = "\ufdd1"
"""Encloses the number of a piece of trusted text that is put in after rendering."""
ESCAPE = "\ufdd2"
"""Written before the stand-in of a private character that came from outside."""

_RAW = "\ufdd3"  # what `exact` encloses numbers in
_PRIVATE = re.compile(f"[{MARK}{HOLE}{ESCAPE}{_RAW}]")
_ESCAPED = re.compile(f"{ESCAPE}(.)|{MARK}")
_STAND_IN = {MARK: "0", HOLE: "1", ESCAPE: "2", _RAW: "3"}
_BACK = {stand_in: private for private, stand_in in _STAND_IN.items()}
_SPACE = " \t\r\n"
_SHELL = "<>|[]{}/\uff5c"


def unguard(text: str) -> str:
    """The text without its marks, private characters from outside put back."""
    if MARK not in text and ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda found: _BACK[found[1]] if found[1] else "", text)


def _escaped(text: str) -> str:
    return _PRIVATE.sub(lambda found: ESCAPE + _STAND_IN[found[0]], text)


def _mapped(value: Any, write: Callable[[str], str]) -> Any:
    match value:
        case str():
            return write(value)
        case dict():
            return {_mapped(key, write): _mapped(item, write) for key, item in value.items()}
        case list() | tuple():
            return [_mapped(item, write) for item in value]
        case _:
            return value


class Guard:
    """Guards text against one tokenizer's control tokens; quick where none is spelled."""

    def __init__(self, tokens: Iterable[str]) -> None:
        spelled = sorted(set(tokens), key=lambda token: (-len(token), token))
        self._spelling = re.compile("|".join(map(re.escape, spelled)) or r"(?!)")
        self._heads = frozenset(token[:cut] for token in spelled for cut in range(1, len(token)))
        self._tails = frozenset(token[cut:] for token in spelled for cut in range(1, len(token)))
        self._cores = frozenset(token.strip(_SHELL) for token in spelled) | frozenset(
            token[1:-1] for token in spelled
        )
        self._openers = tuple(sorted({token[0] for token in spelled}))
        self._closers = tuple(sorted({token[-1] for token in spelled}))
        self._ends = tuple(sorted({*self._openers, *self._closers}))
        self._reach = max(map(len, spelled), default=0)
        self._longest = max(map(len, self._cores), default=0)

    def __call__(self, text: str) -> str:
        """The text as a template may see it."""
        if len(text) <= self._longest and text in self._cores:
            return MARK + text if text else text
        for end in self._ends:
            if end in text:
                return self._edges(self.spellings(text))
        return text if text.isascii() else _escaped(text)

    def spellings(self, text: str) -> str:
        """The text with whole spellings guarded, its edges left alone."""
        if not text.isascii():
            text = _escaped(text)
        return self._spelling.sub(lambda found: found[0][0] + MARK + found[0][1:], text)

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it guarded, keys too; order is kept."""
        return _mapped(value, self)

    def argument(self, value: Any) -> Any:
        """A template argument: its words are compared, so only whole spellings are guarded."""
        return _mapped(value, self.spellings)

    def spells(self, text: str) -> bool:
        """Whether the text spells a control token."""
        return self._spelling.search(text) is not None

    def _edges(self, text: str) -> str:
        start = self._head_edge(text)
        if start is not None:
            text = text[:start] + MARK + text[start:]
        end = self._tail_edge(text)
        return text if end is None else text[:end] + MARK + text[end:]

    def _head_edge(self, text: str) -> int | None:
        """Where the text begins, white space apart, if it begins like the end of a token."""
        for closer in self._closers:
            at = text.find(closer, 0, self._reach + len(_SPACE))
            if at < 0:
                continue
            start = len(text) - len(text.lstrip(_SPACE)) if text[0] in _SPACE else 0
            while 0 <= at < start + self._reach:
                if text[start : at + 1] in self._tails:
                    return start
                at = text.find(closer, at + 1)
        return None

    def _tail_edge(self, text: str) -> int | None:
        """Where the text ends, white space apart, if it ends like the beginning of a token."""
        end = len(text.rstrip(_SPACE)) if text[-1] in _SPACE else len(text)
        for opener in self._openers:
            at = text.rfind(opener, max(0, end - self._reach), end)
            while at >= 0:
                if text[at:end] in self._heads:
                    return end
                at = text.rfind(opener, max(0, end - self._reach), at)
        return None
