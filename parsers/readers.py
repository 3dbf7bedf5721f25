"""Bodies with a syntax of their own, by the names under which grammars call for them.

A reader takes over from the table at its first character and gives back where it is done. It
writes to the call through a `Desk`; it never sees the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from parsers.schema import Schemas


class Desk(Protocol):
    """What a reader may do to the turn.

    `ends`: markers that end a body even inside a string, when they begin a line there. `forced`:
    the name of the only tool that may be called, "" when there is a choice.
    """

    schemas: Schemas
    ends: tuple[str, ...]
    forced: str

    def restore(self, text: str) -> str:
        """Control tokens inside text, spelled out."""
        ...

    def spell(self, marker: str) -> str:
        """A marker as it arrives: its control tokens as single characters."""
        ...

    def call(self, name: str, id_: str = "") -> None: ...
    def arguments(self, json: str) -> None: ...
    def complete(self) -> None: ...
    def cut(self) -> None:
        """Give the open call up as malformed."""
        ...


class Reader(Protocol):
    """`feed` returns where it stopped: text behind that comes again, with more behind it.

    `done`: complete. `failed`: the text at that place does not fit. `raw`: what was read while no
    call had been started, so that nothing is lost when it fails; None once one is.
    """

    done: bool
    failed: bool
    raw: list[str] | None

    def feed(self, text: str, pos: int, *, final: bool) -> int: ...

    def finish(self) -> bool:
        """The body ends here, at a misfit or with the output. True: what came is complete."""
        ...


MakeReader = Callable[[Desk], Reader]
READERS: dict[str, MakeReader] = {}


def register(makers: Mapping[str, MakeReader]) -> None:
    READERS.update(makers)
