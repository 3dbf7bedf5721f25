"""Where the next marker is, or where one might begin. The hold-back of the whole machine.

A lexicon knows the markers of one state. The longest marker wins; what could still grow into a
marker is held, and nothing else is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class Lexicon:
    """Searches text for markers. Each call looks at each character a bounded number of times."""

    __slots__ = ("_extends", "_firsts", "_longest", "_marker", "_nested", "_prefixes", "only")

    def __init__(self, markers: Iterable[str]) -> None:
        ordered = sorted(set(markers), key=len, reverse=True)
        firsts = {marker[0] for marker in ordered}
        self.only = next(iter(firsts)) if len(firsts) == 1 else ""
        self._marker = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
        self._firsts = re.compile(
            "[" + re.escape("".join(sorted(firsts))) + "]" if firsts else r"(?!)"
        )
        self._prefixes = {marker[:n] for marker in ordered for n in range(1, len(marker))}
        self._extends = {m for m in ordered if m in self._prefixes}
        self._longest = len(ordered[0]) if ordered else 0
        self._nested = any(inner in outer[1:] for outer in ordered for inner in ordered)

    def find(self, text: str, pos: int, *, final: bool = False) -> tuple[int, int]:
        """(start, end) of the next marker; (hold, -1) when there is none.

        Text is held from hold; hold is len(text) when none is. `final`: no more will come.
        """
        only = self.only
        first = text.find(only, pos) if only else self._first(text, pos)
        if first < 0:
            return len(text), -1
        found = self._marker.search(text, first)
        if found is None:
            return (len(text) if final else self._hold(text, first)), -1
        start, end = found.span()
        if self._extends and not final and text[start:] in self._prefixes:
            return start, -1
        if self._nested and not final and (hold := self._hold(text, first)) < start:
            return hold, -1  # what was found may be the inside of a longer marker
        return start, end

    def at(self, text: str, pos: int, *, final: bool = False) -> int:
        """The end of the marker that begins at pos; 0 when it may still become one, -1 when not."""
        found = self._marker.match(text, pos)
        if (found is None or self._extends) and not final:
            rest = text[pos : pos + self._longest]
            if pos + len(rest) == len(text) and rest in self._prefixes:
                return 0
        return found.end() if found else -1

    def absent(self, text: str) -> bool:
        """Whether no marker can begin anywhere in the text."""
        only = self.only
        return only not in text if only else self._firsts.search(text) is None

    def _first(self, text: str, pos: int) -> int:
        found = self._firsts.search(text, pos)
        return found.start() if found else -1

    def _hold(self, text: str, pos: int) -> int:
        """Where the longest suffix begins that is the start of a marker."""
        at = max(pos, len(text) - self._longest + 1)
        firsts, prefixes = self._firsts, self._prefixes
        while found := firsts.search(text, at):
            at = found.start()
            if text[at:] in prefixes:
                return at
            at += 1
        return len(text)
