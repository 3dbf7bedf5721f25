"""Python and JSON literals to JSON, as they come.

One reader for both, since models mix them: `{'a': True, "b": [1, None]}`. Strings are handed on
while they are read; numbers pass as they are written when JSON can write them so. What is no
literal is refused; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal as Either

from msgspec import Struct

from parsers.escapes import Unescape
from parsers.json_text import NUMBER, inside, quoted
from parsers.lexicon import Lexicon

_WORDS = {"null": "null", "None": "null"}
_WORDS |= {"true": "true", "True": "true", "false": "false", "False": "false"}
_PYTHON_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?\Z"
)
_CLOSERS = {"[": "]", "{": "}", "(": ")"}
_BARE = re.compile(r"[^ \t\r\n,:=\[\]{}()\"']+")
_WHITE = re.compile(r"[ \t\r\n]+")
_LOOSE_KEY = re.compile('[^:{}\\[\\],"<\ud800-\udfff]+')
_LOOSE_WORD = re.compile('[^,{}\\[\\])"<\ud800-\udfff]+')
_LONGEST = 1000  # characters of a bare word, so that none is looked at again and again


def scalar(word: str) -> str | None:
    """The JSON text of a bare word or number; None when it is neither."""
    if word in _WORDS:
        return _WORDS[word]
    if NUMBER.match(word):
        return word
    if not _PYTHON_NUMBER.match(word):
        return None
    try:
        plain = word.replace("_", "")
        text = repr(float(plain) if set(plain) & set(".eE") else int(plain))
    except ValueError:
        return None
    return text if NUMBER.match(text) else None


class Dialect(Struct, frozen=True):
    """How literals are written.

    `verbatim`: quotes between which a backslash is nothing special. `loose`: keys need no quotes,
    may hold spaces and are followed by a colon; a bare word that is no number is text.
    """

    quotes: tuple[str, ...] = ('"', "'")
    verbatim: tuple[str, ...] = ()
    loose: bool = False


PYTHON = Dialect(quotes=('"""', "'''", '"', "'"))
Expect = Either["value", "value or end", "key or end", "colon", "comma or end"]


class LiteralReader:
    """Reads one literal and hands its JSON to `put` as it comes. `restore` spells control tokens.

    `feed` returns where it stopped: text behind that is to be fed again with more behind it,
    unless the reader is `done` or has `failed` there.
    """

    def __init__(
        self,
        put: Callable[[str], None],
        dialect: Dialect = PYTHON,
        restore: Callable[[str], str] = str,
    ) -> None:
        self._put = put
        self._restore = restore
        self._dialect = dialect
        self._stack: list[str] = []
        self._opens = Lexicon(dialect.quotes)
        self._firsts = {quote[0] for quote in dialect.quotes}
        self._quote: Lexicon | None = None
        self._escape = Unescape()
        self._expect: Expect = "value"
        self._comma = False
        self.done = False
        self.failed = False

    def enter(self, closer: str) -> None:
        """Begin inside an object that `closer` ends: the arguments of a call."""
        self._stack.append(closer)
        self._put("{")
        self._expect = "key or end"

    def feed(self, text: str, pos: int = 0, *, final: bool = False) -> int:
        while pos < len(text) and not self.done and not self.failed:
            if self._quote is not None:
                at = self._string(text, pos, self._quote, final=final)
            else:
                at = self._token(text, pos, final=final)
            if at == pos:
                break
            pos = at
        return pos

    def _string(self, text: str, pos: int, quote: Lexicon, *, final: bool) -> int:
        if self._escape.open:
            self._put(inside(self._escape.feed(text[pos])))
            return pos + 1
        start, end = quote.find(text, pos, final=final)
        if start > pos:
            self._put(self._escape.settle() + inside(self._restore(text[pos:start])))
        if end < 0:
            return start
        if text[start:end] == "\\":
            self._escape.start()
            return end
        self._put(self._escape.settle() + '"')
        self._quote = None
        self._valued()
        return end

    def _token(self, text: str, pos: int, *, final: bool) -> int:
        white = _WHITE.match(text, pos)
        if white:
            return white.end()
        char = text[pos]
        if char in self._firsts:
            start, end = self._opens.find(text, pos, final=final)
            if start == pos:
                return self._open(text, pos, end)
        if char in ",:=[](){}":
            return self._delimiter(char, pos)
        word = self._word().match(text, pos)
        stop = word.end() if word else pos
        if word and stop == len(text) and not final and stop - pos < _LONGEST:
            return pos
        return self._bare(text[pos:stop].rstrip(), pos, stop)

    def _word(self) -> re.Pattern[str]:
        if not self._dialect.loose:
            return _BARE
        return _LOOSE_KEY if self._expect == "key or end" else _LOOSE_WORD

    def _open(self, text: str, pos: int, end: int) -> int:
        if end < 0:
            return pos
        if self._expect not in ("value", "value or end", "key or end"):
            self.failed = True
            return pos
        mark = text[pos:end]
        self._quote = Lexicon([mark] if mark in self._dialect.verbatim else [mark, "\\"])
        self._separate()
        self._put('"')
        return end

    def _delimiter(self, char: str, pos: int) -> int:
        expect = self._expect
        if char in "[{(" and expect in ("value", "value or end"):
            self._separate()
            self._stack.append(_CLOSERS[char])
            self._put("{" if char == "{" else "[")
            self._expect = "key or end" if char == "{" else "value or end"
        elif self._stack and char == self._stack[-1] and expect.endswith("end"):
            self._close(char)
        elif char == "," and expect == "comma or end":
            self._comma = True
            self._expect = "key or end" if self._keyed() else "value or end"
        elif expect == "colon" and char == self._binds():
            self._put(": ")
            self._expect = "value"
        else:
            self.failed = True
            return pos
        return pos + 1

    def _binds(self) -> str:
        """What stands between a key and its value."""
        return "=" if self._stack[-1] == ")" and not self._dialect.loose else ":"

    def _bare(self, word: str, pos: int, end: int) -> int:
        loose = self._dialect.loose
        if self._expect == "key or end" and word and (loose or self._stack[-1] == ")"):
            text: str | None = quoted(word)
        elif self._expect in ("value", "value or end"):
            text = scalar(word)
            if text is None and loose and word:
                text = quoted(word)
        else:
            text = None
        if text is None:
            self.failed = True
            return pos
        self._separate()
        self._put(text)
        self._valued()
        return end

    def _close(self, char: str) -> None:
        self._comma = False
        keyed = self._keyed()
        self._stack.pop()
        self._put("}" if keyed else "]")
        self._expect = "comma or end"
        self.done = not self._stack

    def _keyed(self) -> bool:
        """Whether the innermost bracket holds keys. A `)` does only as the end of a call."""
        top = self._stack[-1]
        return top == "}" or (top == ")" and len(self._stack) == 1)

    def _separate(self) -> None:
        if self._comma:
            self._comma = False
            self._put(", ")

    def _valued(self) -> None:
        if self._expect == "key or end":
            self._expect = "colon"
        else:
            self._expect = "comma or end"
            self.done = not self._stack


def literal(text: str) -> str | None:
    """The JSON of a whole literal; None when the text is not one."""
    parts: list[str] = []
    reader = LiteralReader(parts.append)
    end = reader.feed(text, final=True)
    if not reader.done or text[end:].strip():
        return None
    return "".join(parts)
