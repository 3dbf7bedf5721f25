"""Grammars: one file per wire syntax, and the names under which families call for them.

A file beside this one says `GRAMMARS`, a table from names to grammars. Other packages add theirs
by the entry point group `treadle.grammars`: the entry point loads to such a table. `a+b` takes its
reasoning from `a` and its calls from `b`; either may be empty. It is one machine all the same.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache, lru_cache
from importlib.metadata import entry_points

from msgspec.structs import replace

from parsers.grammar import Grammar, combine

GROUP = "treadle.grammars"


@lru_cache(maxsize=512)
def get(name: str, *, special: tuple[str, ...] = ()) -> Grammar:
    """The grammar of that name, or the pair `reasoning+calls`.

    `special`: strings that are one control token in the family. Raises LookupError, which names
    what comes near; ValueError for two grammars that cannot be taken apart.
    """
    if "+" not in name:
        return replace(_find(name), special=special)
    first, _, second = (part.strip() for part in name.partition("+"))
    if first == second:
        return replace(_find(first), special=special)
    thinks, calls = (_find(part) if part else None for part in (first, second))
    for part, found in ((first, thinks), (second, calls)):
        if found is not None and found.whole:
            raise ValueError(f"grammar {part!r} cannot be combined: reasoning and calls are one")
    return combine(
        thinks.reasoning if thinks else None, calls.calls if calls else None, special=special
    )


@cache
def known() -> dict[str, Grammar]:
    """All grammars by name. Raises ValueError when two have the same name."""
    tables = [
        getattr(importlib.import_module(f"{__name__}.{module.name}"), "GRAMMARS", {})
        for module in pkgutil.iter_modules(__path__)
    ]
    tables += [point.load() for point in entry_points(group=GROUP)]
    found: dict[str, Grammar] = {}
    for table in tables:
        for name, grammar in table.items():
            if name in found:
                raise ValueError(f"two grammars are called {name!r}: rename one")
            found[name] = grammar
    return found


def _find(name: str) -> Grammar:
    found = known().get(name)
    if found is None:
        near = difflib.get_close_matches(name, known(), n=3) or sorted(known())
        raise LookupError(f"no grammar is called {name!r}; choose one of: {', '.join(near)}")
    return found
