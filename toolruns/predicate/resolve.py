"""Names of columns, as written, against the columns there are."""

from __future__ import annotations

import difflib
from typing import Any

from toolruns.predicate.syntax import PredicateError

SHOWN = 24


class Columns:
    """The schema that a predicate is bound to. Names match exactly, else without case."""

    def __init__(self, schema: Any, text: str) -> None:
        self._types: dict[str, Any] = {f.name: f.type for f in schema}
        self._folded = {name.lower(): name for name in reversed(list(self._types))}
        self._text = text

    def resolve(self, name: str, at: int, *, plural: bool = False) -> str:
        """The column meant by `name`; with `plural`, also the one of which it is the plural."""
        candidates = [name]
        if plural and name.lower().endswith("s"):
            candidates.append(name[:-1])
        for candidate in candidates:
            if candidate in self._types:
                return candidate
            if candidate.lower() in self._folded:
                return self._folded[candidate.lower()]
        names = list(self._types)
        close = difflib.get_close_matches(name.lower(), list(self._folded), 1)
        meant = f"did you mean {self._folded[close[0]]!r}? " if close else ""
        rest = f", … {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise self.error(
            f"no column {name!r}", at, f"{meant}columns: {', '.join(names[:SHOWN])}{rest}"
        )

    def type_of(self, name: str, at: int) -> Any:
        return self._types[self.resolve(name, at)]

    def error(self, message: str, at: int, hint: str = "") -> PredicateError:
        return PredicateError(message, self._text, at, hint)
