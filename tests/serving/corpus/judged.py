"""A case as it was played, and the table of properties that can be asserted of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from tests.protocols import corpus_properties
from tests.serving.corpus.cases import Case
from tests.serving.corpus.players import Played
from tests.serving.corpus.steps import Step
from tests.serving.server import Server


class Judged(Struct):
    """A case as it was played, and the property that is asserted of it."""

    case: Case
    played: Played
    fields: dict[str, Any]
    server: Server

    @property
    def runs(self) -> list[Step]:
        return self.played.steps

    @property
    def step(self) -> Step:
        """The step that the property speaks of: the one it names, else the last."""
        return self.runs[self.fields.get("turn", len(self.runs)) - 1]


Check = Callable[[Any], Awaitable[None] | None]
PROPERTIES: dict[str, Check] = dict(corpus_properties.PROPERTIES)


def prop(check: Check) -> Check:
    PROPERTIES[check.__name__] = check
    return check
