"""A call written as one JSON object: `{"name": …, "arguments": {…}}`.

Keys come in any order and unknown ones are skipped; arguments that come before the name wait for
it. Arguments may be an object, null, or a string that holds an object, which is unwrapped once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from parsers.json_object import JsonObject
from parsers.json_text import loads
from parsers.readers import Desk
from parsers.wrapped import Wrapped

_WHITE = re.compile(r"[ \t\r\n]*")
_SEPARATED = re.compile(r"[ \t\r\n,]*")
_SCALAR = re.compile(r"[0-9A-Za-z.+\-]*")
_PLAIN = re.compile(r'[^"\\]*')

Step = Callable[[str, int], int]


class Shape(Struct, frozen=True):
    """Which keys hold what. `declared`: only a declared tool's name with arguments is a call."""

    name: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments", "parameters")
    nested: tuple[str, ...] = ("function",)
    passed: tuple[str, ...] = ("type", "id")
    declared: bool = False


class Envelope:
    """Reads one such object: a row of steps, each of which eats text or hands over to another."""

    def __init__(self, desk: Desk, shape: Shape) -> None:
        self._desk = desk
        self._shape = shape
        self._step: Step = self._open
        self._then: Callable[[str], None] = self._keyed
        self._key = self._name = ""
        self._depth = 0
        self._string: list[str] = []
        self._escaped = False
        self._held: list[str] = []
        self._value: JsonObject | Wrapped | None = None
        self._seen = self._started = self._bad = self._final = False
        self.raw: list[str] | None = []
        self.done = False
        self.failed = False

    def feed(self, text: str, pos: int, *, final: bool = False) -> int:
        start = pos
        self._final = final
        while pos < len(text) and not self.done and not self.failed:
            at, step = pos, self._step
            pos = step(text, pos)
            if pos == at and self._step == step:
                break  # held by what reads the value
        if self.raw is not None:
            self.raw.append(text[start:pos])
        return pos

    def finish(self) -> bool:
        """Complete enough when the arguments are, though closing brackets are missing."""
        if self._step != self._next or not self._seen or not self._name:
            return False
        self._complete()
        return True

    def _open(self, text: str, pos: int) -> int:
        pos = _end(_WHITE, text, pos)
        if pos < len(text):
            pos = self._expect("{", self._next, text, pos)
        return pos

    def _next(self, text: str, pos: int) -> int:
        """Between members: a key, or the end of the object."""
        pos = _end(_SEPARATED, text, pos)
        if pos == len(text):
            return pos
        if text[pos] == "}":
            if self._depth:
                self._depth -= 1
            else:
                self._close()
            return pos + 1
        self._then = self._keyed
        return self._expect('"', self._in_string, text, pos)

    def _expect(self, char: str, step: Step, text: str, pos: int) -> int:
        if text[pos] != char:
            self.failed = True
            return pos
        self._step = step
        return pos + 1

    def _in_string(self, text: str, pos: int) -> int:
        if self._escaped:
            self._escaped = False
            self._string.append(text[pos])
            return pos + 1
        end = _end(_PLAIN, text, pos)
        self._string.append(text[pos:end])
        if end == len(text):
            return end
        if text[end] == "\\":
            self._escaped = True
            self._string.append("\\")
            return end + 1
        raw = self._desk.restore("".join(self._string))
        self._string.clear()
        value = loads(f'"{raw}"')
        self._then(value if isinstance(value, str) else raw)
        return end + 1

    def _keyed(self, key: str) -> None:
        shape = self._shape
        known = (*shape.name, *shape.arguments, *shape.nested, *shape.passed)
        self.failed = shape.declared and key not in known
        self._key = key
        self._step = self._colon

    def _colon(self, text: str, pos: int) -> int:
        pos = _end(_WHITE, text, pos)
        return self._expect(":", self._begin, text, pos) if pos < len(text) else pos

    def _begin(self, text: str, pos: int) -> int:
        """The first character of a value decides how it is read."""
        pos = _end(_WHITE, text, pos)
        if pos == len(text):
            return pos
        char = text[pos]
        desk, shape = self._desk, self._shape
        arguments = self._key in shape.arguments and not self._seen
        if char == '"' and not arguments:
            self._then = self._named if self._key in shape.name and not self._name else self._skip
            self._step = self._in_string
            return pos + 1
        if char == "{" and self._key in shape.nested:
            self._depth += 1
            self._step = self._next
            return pos + 1
        if char in '{["':
            put = self._arguments if arguments else _ignore
            opens = "{" if arguments else "{["
            inner = JsonObject(put, desk.restore, opens=opens, ends=desk.ends)
            self._value = Wrapped(inner) if char == '"' else inner
            self._seen = self._seen or arguments
            self._step = self._in_value
            self._start()
            return pos
        self._step = self._in_scalar
        return pos

    def _in_value(self, text: str, pos: int) -> int:
        value = self._value
        if value is None:
            self._step = self._next
            return pos
        pos = value.feed(text, pos, final=self._final)
        if value.done:
            self._value = None
            self._step = self._next
        self.failed = value.failed
        return pos

    def _in_scalar(self, text: str, pos: int) -> int:
        end = _end(_SCALAR, text, pos)
        self._string.append(text[pos:end])
        if end == len(text):
            return end
        word = "".join(self._string)
        self._string.clear()
        self._step = self._next
        if not word:
            self.failed = True
        elif self._key in self._shape.arguments and not self._seen:
            self._seen = True
            self._bad = word != "null"
        return end

    def _skip(self, _: str) -> None:
        self._step = self._next

    def _named(self, name: str) -> None:
        self._name = name
        self._step = self._next
        self.failed = not name or (self._shape.declared and not self._desk.schemas.declares(name))
        self._start()

    def _start(self) -> None:
        """Start the call as soon as it is certain to be one."""
        if self.failed or self._started or not self._name:
            return
        if self._shape.declared and not self._seen:
            return
        self._started = True
        self.raw = None
        self._desk.call(self._name)
        for piece in self._held:
            self._desk.arguments(piece)
        self._held.clear()

    def _arguments(self, json: str) -> None:
        if self._started:
            self._desk.arguments(json)
        else:
            self._held.append(json)

    def _close(self) -> None:
        if not self._name or (self._shape.declared and not self._seen):
            self.failed = True
            return
        self._complete()

    def _complete(self) -> None:
        self._start()
        self.done = True
        if self._bad:
            self._desk.cut()
        else:
            self._desk.complete()


def _ignore(_: str) -> None:
    """Where the value of a key goes that nobody asked for."""


def _end(pattern: re.Pattern[str], text: str, pos: int) -> int:
    found = pattern.match(text, pos)
    return found.end() if found else pos
