"""The readers of JSON bodies, by the names under which grammars call for them."""

from __future__ import annotations

from parsers.envelope import Envelope, Shape
from parsers.json_object import JsonObject
from parsers.readers import Desk, register


class Arguments:
    """A bare JSON object: the arguments of a call that the table has started."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._object = JsonObject(desk.arguments, desk.restore, ends=desk.ends)
        self._called = False
        self.done = False
        self.failed = False
        self.raw: list[str] | None = None

    def feed(self, text: str, pos: int, *, final: bool = False) -> int:
        at = self._object.feed(text, pos, final=final)
        self.failed = self._object.failed
        if self._object.done:
            self.done = True
            self._desk.complete()
        return at

    def finish(self) -> bool:
        """A body without anything in it is a call without arguments."""
        if self._object.blank:
            self._desk.complete()
            return True
        return False


class NamedArguments(Arguments):
    """A bare JSON object: the arguments of the one tool that had to be called."""

    def feed(self, text: str, pos: int, *, final: bool = False) -> int:
        if not self._called:
            self._called = True
            self._desk.call(self._desk.forced)
        return super().feed(text, pos, final=final)


register(
    {
        "named_arguments": NamedArguments,
        "json_arguments": Arguments,
        "json_call": lambda desk: Envelope(desk, Shape()),
        "bare_json_call": lambda desk: Envelope(desk, Shape(declared=True)),
    }
)
