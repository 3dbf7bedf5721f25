"""Rows of calls: JSON arrays, Python lists of calls, and objects one after the other.

Each item is read by its first character: `{` is one JSON call, a name is one Python call. Calls
that are complete stay so whatever becomes of the rest; `raw` is what came since the last of them.
"""

from __future__ import annotations

import re

from parsers.envelope import Envelope, Shape
from parsers.literals import LiteralReader
from parsers.readers import Desk, Reader, register

_GAP = re.compile(r"[ \t\r\n,;]*")
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")


class PythonCall:
    """One call in Python's syntax: `name(key=value, …)`. `declared`: only of a declared tool."""

    def __init__(self, desk: Desk, *, declared: bool) -> None:
        self._desk = desk
        self._declared = declared
        self._arguments: LiteralReader | None = None
        self.raw: list[str] | None = []
        self.done = False
        self.failed = False

    def feed(self, text: str, pos: int, *, final: bool = False) -> int:
        if self._arguments is None:
            pos = self._named(text, pos, final=final)
        arguments = self._arguments
        if arguments is None:
            return pos
        pos = arguments.feed(text, pos, final=final)
        self.failed = arguments.failed
        if arguments.done:
            self.done = True
            self._desk.complete()
        return pos

    def finish(self) -> bool:
        return False

    def _named(self, text: str, pos: int, *, final: bool) -> int:
        found = _NAME.match(text, pos)
        end = found.end() if found else pos
        if end == len(text) and found and not final:
            return pos
        name = text[pos:end]
        known = self._desk.schemas.declares(name) or not self._declared
        self.failed = text[end : end + 1] != "(" or not name or not known
        if self.failed:
            return pos
        self.raw = None
        self._desk.call(name)
        self._arguments = LiteralReader(self._desk.arguments, restore=self._desk.restore)
        self._arguments.enter(")")
        return end + 1


class CallList:
    """Calls between brackets, or without them (`bracket=False`) until something else comes."""

    def __init__(
        self, desk: Desk, *, declared: bool = False, bracket: bool = True, python: bool = False
    ) -> None:
        self._desk = desk
        self._declared = declared
        self._shape = Shape(declared=declared)
        self._python = python
        self._bracket = bracket
        self._open = not bracket
        self._item: Reader | None = None
        self._count = 0
        self.raw: list[str] | None = []
        self.done = False
        self.failed = False

    def feed(self, text: str, pos: int, *, final: bool = False) -> int:
        while pos < len(text) and not self.done and not self.failed:
            item = self._item
            at = self._step(text, pos, final=final)
            if item is not None and item.done:
                self.raw = []
            elif self.raw is not None:
                self.raw.append(text[pos:at])
            if at == pos and self._item is item:
                break  # held by what reads the item
            pos = at
        return pos

    def finish(self) -> bool:
        """Complete when no call is open: a missing bracket loses nothing."""
        if self._item is None:
            return bool(self._count)
        return self._item.finish()

    def _step(self, text: str, pos: int, *, final: bool) -> int:
        item = self._item
        if item is not None:
            pos = item.feed(text, pos, final=final)
            if item.raw is None:
                self.raw = None
            self.failed = item.failed
            if item.done:
                self._item = None
                self._count += 1
            return pos
        gap = _GAP.match(text, pos)
        pos = gap.end() if gap else pos
        if pos == len(text):
            return pos
        return self._next(text[pos], pos)

    def _next(self, char: str, pos: int) -> int:
        if not self._open:
            self._open = char == "["
            self.failed = not self._open
            return pos + self._open
        if char == "]" and self._bracket:
            self.done = bool(self._count)
            self.failed = not self.done
            return pos + self.done
        if char == "{":
            self._item = Envelope(self._desk, self._shape)
        elif self._python:
            self._item = PythonCall(self._desk, declared=self._declared)
        elif self._bracket or not self._count:
            self.failed = True
        else:
            self.done = True
        return pos


register(
    {
        "json_calls": CallList,
        "json_rows": lambda desk: CallList(desk, bracket=False),
        "bare_json_rows": lambda desk: CallList(desk, bracket=False, declared=True),
        "python_calls": lambda desk: CallList(desk, python=True),
        "bare_python_calls": lambda desk: CallList(desk, python=True, declared=True),
    }
)
