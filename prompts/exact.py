"""JSON that comes out as it went in: number texts and key order survive parse and rendering.

`json` would turn `1.10` into `1.1` and `1e5` into `100000.0`; a prompt re-rendered so differs
from the tokens that the model produced.
"""

from __future__ import annotations

import json
import re
from typing import Any, Self


class Number(float):
    """A float that remembers how it was written."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __reduce__(self) -> tuple[type[Number], tuple[str]]:
        return Number, (self.text,)


def _number(text: str) -> float:
    plain = float(text)
    return plain if repr(plain) == text else Number(text)


_USUAL = (False, None, None, False)
_write = json.JSONEncoder(ensure_ascii=False).encode  # made once: most renderings ask for it
_DECODER = json.JSONDecoder(parse_float=_number)
_RAW = "\ufdd3"
"""Encloses a number's text while `json` believes that it is a string."""
_STAND_IN = re.compile(rf'"(?:{_RAW}|\\ufdd3)([^"]*?)(?:{_RAW}|\\ufdd3)"')


class ExactDict(dict[str, Any]):
    """An object that holds such numbers somewhere."""


class ExactList(list[Any]):
    """An array that holds such numbers somewhere."""


_EXACT = (ExactDict, ExactList, Number)


def loads(text: str) -> Any:
    """Parse JSON, remembering how floats were written. Raises `ValueError`."""
    try:
        return _DECODER.decode(text)
    except RecursionError as err:
        msg = "nested too deeply"
        raise ValueError(msg) from err


def marked(value: Any) -> Any:
    """The value with every container above a `Number` marked, so that `dumps` need not search."""
    match value:
        case dict():
            items = {key: marked(item) for key, item in value.items()}
            return ExactDict(items) if any(map(_exact, items.values())) else items
        case list():
            rows = [marked(item) for item in value]
            return ExactList(rows) if any(map(_exact, rows)) else rows
        case _:
            return value


def dumps(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's `tojson` as `transformers` has it: no HTML escapes, keys in their order."""
    exact = _exact(value) or (isinstance(value, dict) and any(map(_exact, value.values())))
    if exact:
        value = _stand_ins(value)
    if (ensure_ascii, indent, separators, sort_keys) == _USUAL:
        text = _write(value)
    else:
        text = json.dumps(
            value,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )
    return _STAND_IN.sub(r"\1", text) if exact else text


def _exact(value: Any) -> bool:
    return isinstance(value, _EXACT)


def _stand_ins(value: Any) -> Any:
    match value:
        case Number():
            return f"{_RAW}{value.text}{_RAW}"
        case dict():
            return {key: _stand_ins(item) for key, item in value.items()}
        case list() | tuple():
            return [_stand_ins(item) for item in value]
        case _:
            return value
