"""Reads one JSON object (or array) and hands its text on as it comes, verbatim.

Only brackets and strings are followed; the whole is checked once, when it is complete. A raw
control character inside a string, which JSON forbids and models write, is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from parsers.json_text import inside

_OUTSIDE = re.compile(r"[^ \t\r\n0-9.eE+\-:,truefalsn]")
_INSIDE = re.compile('["\\\\\\x00-\\x1f\ud800-\udfff]')
_CLOSERS = {"{": "}", "[": "]"}
_LEAD = re.compile(r"[ \t\r\n]*")


class JsonObject:
    """`feed` returns where it stopped; it stops early when `done`, or `failed` at a misfit."""

    __slots__ = ("_escape", "_opens", "_put", "_restore", "_stack", "_string", "done", "failed")

    def __init__(
        self, put: Callable[[str], None], restore: Callable[[str], str], opens: str = "{"
    ) -> None:
        self._put = put
        self._restore = restore
        self._opens = opens
        self._stack: list[str] = []
        self._string = False
        self._escape = False
        self.done = False
        self.failed = False

    @property
    def blank(self) -> bool:
        """Whether nothing but whitespace has come."""
        return not self._stack and not self.done

    def feed(self, text: str, pos: int) -> int:
        if not self._stack:
            lead = _LEAD.match(text, pos)
            pos = lead.end() if lead else pos
            if pos == len(text):
                return pos
            if text[pos] not in self._opens:
                self.failed = True
                return pos
        start = pos
        size = len(text)
        while pos < size and not self.done:
            if self._escape:
                self._escape = False
                if not "\ud800" <= text[pos] <= "\udfff":
                    pos += 1
            elif self._string:
                found = _INSIDE.search(text, pos)
                if found is None:
                    break
                pos = found.end()
                start = self._mark(found.group(), text, start, pos)
            else:
                found = _OUTSIDE.search(text, pos)
                if found is None:
                    break
                pos = found.end()
                if not self._bracket(found.group()):
                    pos -= 1
                    break
        else:
            self._put(text[start:pos])
            return pos
        end = pos if self.failed else size
        self._put(text[start:end])
        return end

    def _mark(self, char: str, text: str, start: int, end: int) -> int:
        """What a character inside a string does; returns from where text is still to be put."""
        if char == '"':
            self._string = False
        elif char == "\\":
            self._escape = True
        else:
            self._put(text[start : end - 1])
            self._put(inside(self._restore(char)))
            return end
        return start

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
