"""Placeholders of a reply: `{last_user}`, `{tool_result:200}`, `{count:int}`.

Only a known name in single braces is one; JSON and code in a reply keep their braces. `:200` keeps
the first 200 characters, `:int` makes a number of a string that is nothing else, and `{{name}}`
stands for the braces themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from actors.engines.scripted.scene import Scene

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{([a-z_]\w*)(?::(\d+|int))?\}")
KNOWN = frozenset(
    {"last_user", "tool_result", "tool_results", "step", "turn", "n", "model", "session", "tool"}
)
Values = Mapping[str, str | int]


def values_of(scene: Scene, caught: Mapping[str, str]) -> dict[str, str | int]:
    """What the placeholders stand for in this conversation; `n` and `tool` change as it is said."""
    request = scene.request
    return {
        "last_user": scene.last_user,
        "tool_result": scene.result,
        "tool_results": scene.results,
        "step": scene.step,
        "turn": scene.turn,
        "n": 1,
        "model": request.model if request else "",
        "session": request.session if request else "",
        "tool": scene.tools[0].name if scene.tools else "",
        **caught,
    }


def names_in(value: Any) -> Iterator[str]:
    """The names of all placeholders in a value, however deep."""
    if isinstance(value, str):
        yield from (found[2] for found in PLACEHOLDER.finditer(value) if found[2])
    elif isinstance(value, dict):
        for inner in value.values():
            yield from names_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names_in(inner)


def fill(text: str, values: Values) -> str:
    def put(found: re.Match[str]) -> str:
        if found[1]:
            return "{" + found[1] + "}"
        value = str(values[found[2]])
        return value[: int(found[3])] if found[3] and found[3] != "int" else value

    return PLACEHOLDER.sub(put, text)


def fill_deep(value: Any, values: Values) -> Any:
    """The value with its strings filled; one that is a single number's placeholder becomes it."""
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        if whole and whole[2] and (whole[3] == "int" or isinstance(values[whole[2]], int)):
            return int(values[whole[2]])
        return fill(value, values)
    if isinstance(value, dict):
        return {fill(key, values): fill_deep(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill_deep(inner, values) for inner in value]
    return value
