"""Reads one JSON object (or array) and hands its text on as it comes, verbatim.

Only brackets and strings are followed; the whole is checked once, when it is complete. A raw
control character inside a string, which JSON forbids and models write, is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal as Either

from parsers.json_text import inside

_OUTSIDE = re.compile(r"[^ \t\r\n0-9.eE+\-:,truefalsn]")
_INSIDE = re.compile('["\\\\\\x00-\\x1f\ud800-\udfff]')
_CLOSERS = {"{": "}", "[": "]"}
_LEAD = re.compile(r"[ \t\r\n]*")


class JsonObject:
    """`feed` returns where it stopped; it stops early when `done`, or `failed` at a misfit."""

    __slots__ = (
        "_ends",
        "_escape",
        "_opens",
        "_put",
        "_restore",
        "_stack",
        "_start",
        "_string",
        "done",
        "failed",
    )

    def __init__(
        self,
        put: Callable[[str], None],
        restore: Callable[[str], str],
        *,
        opens: str = "{",
        ends: tuple[str, ...] = (),
    ) -> None:
        self._put = put
        self._restore = restore
        self._opens = opens
        self._ends = ends
        self._stack: list[str] = []
        self._start = 0
        self._string = False
        self._escape = False
        self.done = False
        self.failed = False

    @property
    def blank(self) -> bool:
        """Whether nothing but whitespace has come."""
        return not self._stack and not self.done

    def feed(self, text: str, pos: int, *, final: bool = False) -> int:
        if not self._stack:
            lead = _LEAD.match(text, pos)
            pos = lead.end() if lead else pos
            if pos == len(text):
                return pos
            if text[pos] not in self._opens:
                self.failed = True
                return pos
        self._start = pos
        while pos < len(text) and not self.done and not self.failed:
            at = pos
            pos = self._in_string(text, pos, final=final) if self._string else self._out(text, pos)
            if pos == at and not self.failed:
                break  # held: what ends a body may begin here
        self._put(text[self._start : pos])
        return pos

    def _in_string(self, text: str, pos: int, *, final: bool) -> int:
        if self._escape:
            self._escape = False
            if not "\ud800" <= text[pos] <= "\udfff":  # a control token is restored below
                return pos + 1
        found = _INSIDE.search(text, pos)
        if found is None:
            return len(text)
        at, end = found.span()
        char = found.group()
        if char == '"':
            self._string = False
        elif char == "\\":
            self._escape = True
        elif char == "\n" and self._ends and (ended := self._ended(text, end, final=final)) != "no":
            self.failed = ended == "yes"
            return at
        else:
            self._put(text[self._start : at])
            self._put(inside(self._restore(char)))
            self._start = end
        return end

    def _ended(self, text: str, pos: int, *, final: bool) -> Either["yes", "no", "unknown"]:
        """Whether a marker that ends the body begins here."""
        if text.startswith(self._ends, pos):
            return "yes"
        rest = text[pos:]
        if not final and any(end.startswith(rest) for end in self._ends):
            return "unknown"
        return "no"

    def _out(self, text: str, pos: int) -> int:
        found = _OUTSIDE.search(text, pos)
        if found is None:
            return len(text)
        return found.end() if self._bracket(found.group()) else found.start()

    def _bracket(self, char: str) -> bool:
        if char == '"':
            self._string = True
        elif char in _CLOSERS:
            self._stack.append(_CLOSERS[char])
        elif self._stack[-1] == char:
            self._stack.pop()
            self.done = not self._stack
        else:
            self.failed = True
        return not self.failed
