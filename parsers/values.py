"""One argument whose wire has no types: what its text means by the tool's schema.

Strings are handed on as they come, verbatim but for the one newline pair that a template writes.
Anything else is read whole and passed on as the JSON it is; a Python literal is accepted where
JSON fails, and what cannot be read as the declared type is passed on as a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from parsers.grammar import Trim
from parsers.json_text import INTEGER, NUMBER, inside, loads, quoted
from parsers.literals import LiteralReader, literal, scalar
from parsers.schema import Kinds

_STRING = Kinds.STRING
_PATIENCE = 256  # characters after which an object or array streams instead of being read whole
_LONGEST = 64  # characters that a word or a number may have; a longer one is a string
_NUMERIC = re.compile(r"-?[0-9.eE+-]*\Z")
_WORDS = {Kinds.NULL: ("null", "None"), Kinds.BOOLEAN: ("true", "false", "True", "False")}


def typed(text: str, kinds: Kinds) -> str:
    """The JSON text of a value."""
    word = text.strip()
    found = _scalar(word, kinds)
    if found is None and word[:1] in ("{", "[", "(", '"', "'"):
        found = _composite(word, kinds)
    return quoted(text) if found is None else found


def _scalar(word: str, kinds: Kinds) -> str | None:
    for kind, words in _WORDS.items():
        if kind in kinds and word in words:
            return scalar(word)
    if kinds & (Kinds.INTEGER | Kinds.NUMBER):
        if INTEGER.match(word) or (Kinds.NUMBER in kinds and NUMBER.match(word)):
            return word
        plain = None if _STRING in kinds else scalar(word)
        if plain and (INTEGER if Kinds.NUMBER not in kinds else NUMBER).match(plain):
            return plain
    return None


def _composite(word: str, kinds: Kinds) -> str | None:
    value = loads(word)
    if isinstance(value, str) and _STRING not in kinds:  # written twice: JSON inside a JSON string
        word, value = value, loads(value)
    if (isinstance(value, dict) and Kinds.OBJECT in kinds) or (
        isinstance(value, list) and Kinds.ARRAY in kinds
    ):
        return word
    if _STRING in kinds:
        return None
    found = literal(word)
    opener = (found or "")[:1]
    if (opener == "{" and Kinds.OBJECT in kinds) or (opener == "[" and Kinds.ARRAY in kinds):
        return found
    return None


def _undecided(head: str, kinds: Kinds) -> bool:
    """Whether a value that begins like this may still be something other than a string."""
    head = head.strip()
    if not head:
        return True
    if head[0] in "{[" and kinds & (Kinds.OBJECT | Kinds.ARRAY):
        return True
    if kinds & (Kinds.INTEGER | Kinds.NUMBER) and _NUMERIC.match(head):
        return True
    return any(
        word.startswith(head) for kind, words in _WORDS.items() if kind in kinds for word in words
    )


class Value:
    """Reads one value and hands its JSON to `put` as soon as it is known what it is.

    `failed`: an object or array that had begun to stream turned out to be none.
    """

    __slots__ = (
        "_began",
        "_head",
        "_kinds",
        "_lead",
        "_literal",
        "_newline",
        "_parts",
        "_put",
        "_settled",
        "_size",
        "_string",
        "_trim",
        "failed",
    )

    def __init__(self, kinds: Kinds, trim: Trim, put: Callable[[str], None]) -> None:
        self._put = put
        self._kinds = kinds
        self._string = kinds == _STRING
        self._trim = trim == "newlines"
        self._lead = self._trim
        self._newline = False
        self._began = False
        self._settled = False
        self._parts: list[str] = []
        self._size = 0
        self._literal: LiteralReader | None = None
        self._head: list[str] | None = []  # what a literal says before it is trusted
        self.failed = False

    def feed(self, text: str) -> None:
        """More of the value, as plain text."""
        if self._lead and text:
            self._lead = False
            if text[0] == "\n":
                text = text[1:]
        if not text:
            return
        if self._string:
            self._pass(text)
        elif self._literal is not None:
            self._stream(text, self._literal)
        else:
            self._gather(text)

    def end(self) -> None:
        """The value is complete."""
        if self._string:
            self._put('"' if self._began else '""')
            return
        text = "".join(self._parts)
        if self._literal is not None:
            self._stream("", self._literal, final=True)
            self.failed = self.failed or not self._literal.done
            return
        if self._trim and text.endswith("\n"):
            text = text[:-1]
        self._put(typed(text, self._kinds))

    def _pass(self, text: str) -> None:
        """A string's text; a last newline waits, since the template's own may be the last."""
        if self._newline:
            text = "\n" + text
            self._newline = False
        if self._trim and text[-1] == "\n":
            self._newline = True
            text = text[:-1]
        if not text:
            return
        if self._began:
            self._put(inside(text))
        else:
            self._began = True
            self._put('"' + inside(text))

    def _gather(self, text: str) -> None:
        """A value that may be no string waits until that is clear, or until it is long."""
        self._parts.append(text)
        self._size += len(text)
        if _STRING in self._kinds:
            self._decide()
        elif self._size > _PATIENCE and not self._settled:
            self._settled = True
            whole = "".join(self._parts)
            if whole.lstrip()[:1] in ("{", "["):
                self._begin(whole)

    def _decide(self) -> None:
        if self._settled:
            return
        whole = "".join(self._parts)
        if len(whole) > _LONGEST:
            self._settled = whole.lstrip()[:1] in ("{", "[") and _undecided(whole, self._kinds)
        if not self._settled and (len(whole) > _LONGEST or not _undecided(whole, self._kinds)):
            self._string = True
            self._parts.clear()
            self._pass(whole)

    def _begin(self, whole: str) -> None:
        """A long object or array: from here on it streams, if it is well formed so far."""
        literal = LiteralReader(self._say)
        read = literal.feed(whole[:_PATIENCE])
        opened = Kinds.OBJECT if whole.lstrip()[0] == "{" else Kinds.ARRAY
        head, self._head = self._head, None
        if literal.failed or literal.done or opened not in self._kinds:
            return
        self._put("".join(head or ()))
        self._literal = literal
        self._parts.clear()
        self._stream(whole[read:], literal)

    def _say(self, json: str) -> None:
        if self._head is None:
            self._put(json)
        else:
            self._head.append(json)

    def _stream(self, text: str, literal: LiteralReader, *, final: bool = False) -> None:
        """More of a long object or array; what could still be half a token waits in `_parts`."""
        text = "".join(self._parts) + text
        self._parts.clear()
        read = literal.feed(text, final=final)
        rest = text[read:]
        if literal.failed or (literal.done and rest.strip()):
            self.failed = True
        elif rest and not literal.done:
            self._parts.append(rest)
