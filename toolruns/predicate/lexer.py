"""From text to words. One pass, no regular expression, at most `MAX_CHARS` characters."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from toolruns.predicate.syntax import PredicateError

MAX_CHARS = 1024

Kind = Literal["number", "string", "name", "symbol", "end"]

SYMBOLS = ("<=", ">=", "!=", "<>", "==", "&&", "||", "(", ")", ",", "<", ">", "=", "!", *"+-*/")
SUFFIXES = {
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "k": 1e3,
    "kb": 1024.0,
    "mb": 1024.0**2,
    "gb": 1024.0**3,
    "%": 0.01,
}


class Token(Struct, frozen=True):
    kind: Kind
    text: str
    at: int
    value: float = 0.0


def tokens(text: str) -> list[Token]:
    """The words of `text`, an `end` last. Raises PredicateError at the offending character."""
    if len(text) > MAX_CHARS:
        message = f"longer than {MAX_CHARS} characters"
        raise PredicateError(message, text, MAX_CHARS)
    found: list[Token] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif char.isascii() and char.isdigit():
            at = _number(text, at, found)
        elif char == "'":
            at = _quoted(text, at, "'", "string", found)
        elif char in '"`':
            at = _quoted(text, at, char, "name", found)
        elif char.isalpha() or char == "_":
            end = at
            while end < len(text) and (text[end].isalnum() or text[end] in "_."):
                end += 1
            found.append(Token("name", text[at:end], at))
            at = end
        else:
            symbol = next((s for s in SYMBOLS if text.startswith(s, at)), "")
            if not symbol:
                message = f"unexpected character {char!r}"
                raise PredicateError(message, text, at)
            found.append(Token("symbol", symbol, at))
            at += len(symbol)
    found.append(Token("end", "", len(text)))
    return found


def _number(text: str, at: int, found: list[Token]) -> int:
    end = at
    while end < len(text) and (text[end] in "0123456789_." or _exponent(text, at, end)):
        end += 1
    digits = text[at:end].replace("_", "")
    try:
        value = float(digits)
    except ValueError:
        message = f"{digits!r} is not a number"
        raise PredicateError(message, text, at) from None
    tail = end
    while tail < len(text) and (text[tail].isalpha() or text[tail] == "%"):
        tail += 1
    suffix = text[end:tail].lower()
    if suffix and suffix not in SUFFIXES:
        message = f"unknown unit {suffix!r}"
        raise PredicateError(message, text, end, f"units: {', '.join(SUFFIXES)}")
    found.append(Token("number", text[at:tail], at, value * SUFFIXES.get(suffix, 1.0)))
    return tail


def _exponent(text: str, start: int, at: int) -> bool:
    """Whether the character at `at` belongs to `1e9`, `1e-9`; a digit stands before the e."""
    char = text[at]
    if char in "eE":
        rest = text[at + 1 : at + 3].lstrip("+-")
        return at > start and rest[:1].isdigit()
    return char in "+-" and text[at - 1] in "eE"


def _quoted(text: str, at: int, quote: str, kind: Kind, found: list[Token]) -> int:
    """A quoted string or name; the quote is doubled to stand for itself."""
    pieces: list[str] = []
    here = at + 1
    while True:
        end = text.find(quote, here)
        if end < 0:
            message = "the quote is never closed"
            raise PredicateError(message, text, at)
        pieces.append(text[here:end])
        if not text.startswith(quote, end + 1):
            break
        pieces.append(quote)
        here = end + 2
    found.append(Token(kind, "".join(pieces), at, 1.0))  # value 1 marks a quoted name
    return end + 1
