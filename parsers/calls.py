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
        self._keys: set[str] = set()
        self.ends: tuple[str, ...] = ()
        self.forced = ""
        self.restore = specials.restore
        self.spell = specials.spell

    def catch(self, groups: dict[str, str], *, declared: bool) -> bool:
        """Remember what a header named. False when it had to be declared and was not.

        A declared key is one that the open call's tool declares and that it does not have yet.
        """
        if declared and "name" in groups and not self.schemas.declares(groups["name"]):
            return False
        if declared and "key" in groups and not self._expects(groups["key"]):
            return False
        self._caught.update(groups)
        return True

    def _expects(self, key: str) -> bool:
        return key not in self._keys and self.schemas.has(self._name, key)

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
            if self._value.failed:
                self.cut()

    def call(self, name: str, id_: str = "") -> None:
        if self._emitter.block is Block.CALL:
            self.cut()
        self._confirm()
        self._name = name
        self._keys.clear()
        self._value = None
        self.undeclared = self.undeclared or not self.schemas.declares(name)
        self._emitter.call(name, id_)

    def arguments(self, json: str) -> None:
        """More of the arguments' JSON text. Dropped when no call is open: it was cut."""
        if self._emitter.block is Block.CALL:
            self._emitter.arguments(json)

    def complete(self) -> None:
        """The open call has all its arguments. Nothing happens when none is open."""
        if self._emitter.block is Block.CALL:
            if self._keys:
                self._emitter.arguments("}")
            self._emitter.complete()

    def cut(self) -> None:
        """The open call is malformed. Nothing happens when none is open."""
        self._value = None
        if self._emitter.block is Block.CALL:
            self._emitter.cut("malformed")

    def _begin(self, key: str, kind: str, trim: Trim) -> None:
        self._end_value()
        if self._emitter.block is not Block.CALL:
            return
        kinds: Kinds = worded(kind) if kind else self.schemas.kinds(self._name, key)
        lead = (", " if self._keys else "{") + quoted(key) + ": "
        self._keys.add(key)
        self._emitter.arguments(lead)
        self._value = Value(kinds, trim, self._emitter.arguments)

    def _end_value(self) -> None:
        value, self._value = self._value, None
        if value is not None:
            value.end()
            if value.failed:
                self.cut()
