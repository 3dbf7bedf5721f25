"""Freeform (custom) tools: the model sees a function with one string, the client free text.

No chat template knows a tool without a schema, so a custom tool is declared as a function whose
only argument is `input`. Its grammar, where it has one, is told in that argument's description and
kept in `Tool.format` for engines that can hold the model to it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from turns.turn import Tool

INPUT = "input"
HIGH, LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)  # the halves of a UTF-16 pair
_SHORT = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


def tool(name: str, description: str, shape: dict[str, Any] | None) -> Tool:
    """A custom tool as the model sees it."""
    told = "The whole input of the tool, as free text: not JSON, not quoted, not fenced."
    grammar = shape or {}
    if grammar.get("type") == "grammar":
        told += f" It must match this {grammar.get('syntax')} grammar:\n{grammar.get('definition')}"
    parameters = {
        "type": "object",
        "properties": {INPUT: {"type": "string", "description": told}},
        "required": [INPUT],
        "additionalProperties": False,
    }
    return Tool(name, description, parameters, kind="custom", format=shape)


def input_of(arguments: str) -> str:
    """The free text in a complete call: `input`, else the only string, else all as it stands."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    if isinstance(value, dict):
        if isinstance(text := value.get(INPUT), str):
            return text
        if len(value) == 1 and isinstance(text := next(iter(value.values())), str):
            return text
    return arguments


def input_so_far(arguments: str) -> str:
    """The free text in a call that was cut: what `InputStream` gave of it."""
    return InputStream().feed(arguments)


class InputStream:
    """Decodes the string of `{"input": "…"}` while it is still being written.

    `feed` gives the text that each piece of JSON adds. Text is only given while the arguments have
    exactly this form; of any other form nothing is given here, and `input_of` decides at the end.
    Every character is looked at once.
    """

    def __init__(self) -> None:
        self._head = ""
        self._inside = False
        self._over = False
        self._escape = ""
        self._high = 0

    def feed(self, json: str) -> str:
        if self._over:
            return ""
        if not self._inside:
            json = self._open(json)
        if not self._inside or not json:
            return ""
        if not self._escape and not self._high and '"' not in json and "\\" not in json:
            return json
        return self._string(json)

    def _open(self, json: str) -> str:
        """Looks for `{"input":"`; gives what follows it."""
        for index, char in enumerate(json):
            if char in " \t\r\n":
                continue
            self._head += char
            if not _OPENING.startswith(self._head):
                self._over = True
                return ""
            if self._head == _OPENING:
                self._inside = True
                return json[index + 1 :]
        return ""

    def _string(self, json: str) -> str:
        out: list[str] = []
        start = 0
        for index, char in enumerate(json):
            if self._escape:
                start = index + 1
                self._escape += char
                out.append(self._escaped())
            elif char == "\\":
                out.append(json[start:index])
                self._escape = char
                start = index + 1
            elif char == '"':
                out.append(json[start:index])
                self._over = True
                start = len(json)
                break
            elif self._high:
                out.append("\ufffd")
                self._high = 0
        out.append(json[start:])
        return "".join(out)

    def _escaped(self) -> str:
        """The character of an escape once it is whole, "" before; pairs are joined."""
        escape = self._escape
        if escape[1] != "u":
            self._escape = ""
            return _SHORT.get(escape[1], escape[1])
        if len(escape) < len("\\uXXXX"):
            return ""
        self._escape = ""
        unit = int(escape.removeprefix("\\u"), 16)
        if unit in HIGH:
            self._high = unit
            return ""
        if self._high and unit in LOW:
            unit = 0x10000 + ((self._high - HIGH.start) << 10) + (unit - LOW.start)
        self._high = 0
        return chr(unit)


_OPENING = '{"' + INPUT + '":"'
