"""JSON as text: writing strings, and telling what a whole text is. Nothing is round-tripped."""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from typing import Any

import msgspec

WHITE = " \t\r\n"
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def inside(text: str) -> str:
    """Text as it stands between the quotes of a JSON string."""
    return encode_basestring(text)[1:-1] if _ESCAPED.search(text) else text


def quoted(text: str) -> str:
    return f'"{inside(text)}"'


_ABSENT: Any = object()


def loads(text: str) -> Any:
    """The value of a strict JSON text; ABSENT when it is not one."""
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return _ABSENT


def is_object(text: str) -> bool:
    return isinstance(loads(text), dict)


def is_array(text: str) -> bool:
    return isinstance(loads(text), list)
