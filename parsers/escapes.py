"""Backslash escapes of string literals, across any cut."""

from __future__ import annotations

_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "a": "\a",
    "0": "\0",
    "\n": "",
}
_HIGH, _LOW, _PAST, _MOST = 0xD800, 0xDC00, 0xE000, 0x10FFFF  # surrogates, code points
_WIDTHS = {"x": 2, "u": 4, "U": 8}


class Unescape:
    """Escapes of string literals, across any cut. JSON's escapes are a subset of Python's here.

    A high surrogate waits for its low one; one that stays alone becomes U+FFFD.
    """

    __slots__ = ("_digits", "_high", "_width", "open")

    def __init__(self) -> None:
        self.open = False
        self._digits = ""
        self._width = 0
        self._high = 0

    def start(self) -> None:
        self.open = True
        self._width = 0
        self._digits = ""

    def feed(self, char: str) -> str:
        """The next character after a backslash; "" while the escape is not complete."""
        if not self._width:
            if char in _WIDTHS:
                self._width = _WIDTHS[char]
                return ""
            self.open = False
            known = _ESCAPES.get(char)
            if known is None:
                known = char if char in "\"'\\/`" else "\\" + char
            return self.settle() + known
        self._digits += char
        if len(self._digits) < self._width:
            return ""
        self.open = False
        try:
            code = int(self._digits, 16)
        except ValueError:
            return self.settle() + "\ufffd"
        return self._join(code)

    def settle(self) -> str:
        """What a waiting high surrogate becomes when something else follows."""
        if self._high:
            self._high = 0
            return "\ufffd"
        return ""

    @property
    def waiting(self) -> bool:
        return bool(self._high)

    def _join(self, code: int) -> str:
        if self._high and _LOW <= code < _PAST:
            high, self._high = self._high, 0
            return chr(0x10000 + ((high - _HIGH) << 10) + (code - _LOW))
        before = self.settle()
        if _HIGH <= code < _LOW:
            self._high = code
            return before
        if _LOW <= code < _PAST or code > _MOST:
            return before + "\ufffd"
        return before + chr(code)
