"""The open call: its name, its arguments one by one, and how it ends. What readers write to."""

from __future__ import annotations

from collections.abc import Callable

from parsers.emitter import Block, Emitter
from parsers.grammar import Action, Trim
from parsers.json_text import quoted
from parsers.schema import Kinds, Schemas, worded
from parsers.specials import Specials
from parsers.values import Value


class CallDesk:
    """One per turn. `undeclared`: a call named a tool that the turn does not declare."""

    def __init__(
        self, schemas: Schemas, emitter: Emitter, specials: Specials, confirm: Callable[[], None]
    ) -> None:
        self.schemas = schemas
        self.undeclared = False
        self._emitter = emitter
        self._confirm = confirm
        self._caught: dict[str, str] = {}
        self._name = ""
        self._value: Value | None = None
        self._count = 0
        self.restore = specials.restore
        self.spell = specials.spell

    def catch(self, groups: dict[str, str], *, declared: bool) -> bool:
        """Remember what a header named. False when it had to name a declared tool and did not."""
        if declared and not self.schemas.declares(groups.get("name", "")):
            return False
        self._caught.update(groups)
        return True

    def act(self, action: Action, trim: Trim) -> None:
        """Do what the table says."""
        match action:
            case "call":
                self.call(self._caught.get("name", ""), self._caught.pop("id", ""))
            case "key":
                self._begin(self._caught.get("key", ""), self._caught.pop("kind", ""), trim)
            case "end_value":
                self._end_value()
            case "end_call":
                self._end_value()
                self.complete()
            case "cut_call":
                self.cut()

    def value(self, text: str) -> None:
        """More of the open argument's value."""
        if self._value is not None:
            self._value.feed(text)

    def call(self, name: str, id_: str = "") -> None:
        if self._emitter.block is Block.CALL:
            self.cut()
        self._confirm()
        self._name = name
        self._count = 0
        self._value = None
        self.undeclared = self.undeclared or not self.schemas.declares(name)
        self._emitter.call(name, id_)

    def arguments(self, json: str) -> None:
        self._emitter.arguments(json)

    def complete(self) -> None:
        """The open call has all its arguments. Nothing happens when none is open."""
        if self._emitter.block is Block.CALL:
            if self._count:
                self._emitter.arguments("}")
            self._emitter.complete()

    def cut(self) -> None:
        """The open call is malformed. Nothing happens when none is open."""
        self._value = None
        if self._emitter.block is Block.CALL:
            self._emitter.cut("malformed")

    def _begin(self, key: str, kind: str, trim: Trim) -> None:
        self._end_value()
        kinds: Kinds = worded(kind) if kind else self.schemas.kinds(self._name, key)
        lead = (", " if self._count else "{") + quoted(key) + ": "
        self._count += 1
        put = self._emitter.arguments
        put(lead)
        self._value = Value(kinds, trim, put)

    def _end_value(self) -> None:
        if self._value is not None:
            self._value.end()
            self._value = None
