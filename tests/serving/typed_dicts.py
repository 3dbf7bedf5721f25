"""Values of the typed dicts by which the official SDKs spell requests: every field, marked words."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable
from typing import Any

import typing_extensions as extensions  # the SDKs' own; `typing` does not know theirs in 3.11

MARK = "Marked"
DEEPEST = 8
PLAIN: dict[Any, Any] = {int: 1, float: 1.0, bool: False, object: {}, Any: {}}
FIXED = {"role": "user", "media_type": "text/plain", "cache_control": None, "citations": None}
"""Fields that have a meaning of their own."""


def kinds(union: Any) -> dict[str, Any]:
    """The members of a union by their `type`."""
    found: dict[str, Any] = {}
    for member in typing.get_args(union):
        for inner in (member, *typing.get_args(member)):
            if extensions.is_typeddict(inner):
                found |= dict.fromkeys(names(inner), inner)
    return found


def names(typed: Any) -> Iterable[str]:
    """What a typed dict's own `type` may be."""
    hint = extensions.get_type_hints(typed).get("type")
    options = [hint, *typing.get_args(hint)]
    literal = [one for one in options if typing.get_origin(one) is typing.Literal]
    return typing.get_args(literal[0]) if literal else ()


def made(typed: Any, kind: str, depth: int = 0) -> dict[str, Any]:
    """A value of a typed dict, its strings `Marked-<field>`."""
    value: dict[str, Any] = {}
    for name, hint in extensions.get_type_hints(typed).items():
        if name in FIXED:
            value |= {name: FIXED[name]} if FIXED[name] else {}
        elif name == "type":
            value[name] = kind
        else:
            value[name] = _value(hint, name, depth + 1)
    return value


def _value(hint: Any, name: str, depth: int) -> Any:
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if hint is str:
        return f"{MARK}-{name}"
    if hint in PLAIN:
        return PLAIN[hint]
    if origin is typing.Literal:
        return options[0]
    if depth > DEEPEST:
        return None
    if extensions.is_typeddict(hint):
        return made(hint, next(iter(names(hint)), ""), depth)
    if origin in (typing.Union, types.UnionType):
        given = [one for one in options if one is not type(None)]
        return _value(str if str in given else given[0], name, depth)
    if origin is typing.Annotated:
        return _value(options[0], name, depth)
    if origin is dict:
        return {MARK: _value(options[1], name, depth)}
    if options and origin is not None:  # a list of any kind
        return [_value(options[0], name, depth)]
    return {}
