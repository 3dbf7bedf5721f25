"""JSON inside a JSON string: the string is unwrapped while it is read."""

from __future__ import annotations

import re

from parsers.escapes import Unescape
from parsers.json_object import JsonObject

_PLAIN = re.compile(r'[^"\\]*')


class Wrapped:
    """Reads a JSON string from its opening quote and feeds what it says to `inner`."""

    __slots__ = ("_escape", "_inner", "_open", "done", "failed")

    def __init__(self, inner: JsonObject) -> None:
        self._inner = inner
        self._escape = Unescape()
        self._open = False
        self.done = False
        self.failed = False

    def feed(self, text: str, pos: int, *, final: bool = False) -> int:
        if not self._open:
            self._open = True
            pos += 1
        while pos < len(text) and not self.done and not self.failed:
            if self._escape.open:
                self._say(self._escape.feed(text[pos]))
                pos += 1
                continue
            found = _PLAIN.match(text, pos)
            end = found.end() if found else pos
            if end > pos:
                self._say(self._escape.settle() + text[pos:end])
            if end == len(text):
                return end
            if text[end] == "\\":
                self._escape.start()
            else:
                self._say(self._escape.settle())
                self.done = self._inner.done or self._inner.blank
                self.failed = not self.done
            pos = end + 1
        return pos

    def _say(self, plain: str) -> None:
        """Text of the string goes to the inner reader; behind the object only blanks may stand."""
        inner = self._inner
        read = 0 if inner.done or not plain else inner.feed(plain, 0)
        self.failed = inner.failed or bool(plain[read:].strip())
