"""Which families there are, and by which names people know them.

Our own families are the files beside this one that hold a `FAMILY`. Other packages add theirs by
the entry point group `treadle.families`: the entry point loads to a `Family`. A name is taken
once; who comes second is told so, nobody is replaced in silence.

A reasoning parser and a tool parser of another server can be chosen apart, by the names they have
there: `choose("nemotron_deci", "qwen3_coder")`. The pair is a family too, named by both
(`nemotron_deci+qwen3_coder`), so that one string still says all that a parser must know.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import Literal

import msgspec

import families
from families.family import Family
from turns.errors import NotFoundError

GROUP = "treadle.families"
Kind = Literal["reasoning", "tools"]
_LAST = 99  # a family's own name gives way to what other servers call by that name


@functools.cache
def known() -> dict[str, Family]:
    """All families by name: our own first, then those of other packages."""
    return index([*_own(), *_plugged()])


def index(found: Iterable[Family]) -> dict[str, Family]:
    """Families by name. Raises ValueError when two have the same name."""
    table: dict[str, Family] = {}
    for family in found:
        if family.name in table:
            msg = (
                f"two families are called {family.name!r}: {table[family.name].title!r} and "
                f"{family.title!r}; rename the second"
            )
            raise ValueError(msg)
        table[family.name] = family
    return table


def get(name: str) -> Family:
    """The family of that name, or the pair `reasoning+tools`.

    Raises NotFoundError, which names what comes near.
    """
    found = known().get(name)
    if found is not None:
        return found
    reasoning, plus, tools = name.partition("+")
    if plus:
        return choose(reasoning, tools)
    raise NotFoundError(_unknown("family", name, known()), param="family")


def choose(reasoning: str, tools: str) -> Family:
    """The family made of a reasoning parser and a tool parser, each by any name it is known by.

    "" is a parser that is off. A family that is known by both names is meant itself. Of any other
    pair, all that is not the grammar comes from the family of the reasoning parser: its template
    is the one that knows thinking.
    """
    first = _owners("reasoning", reasoning) if reasoning else []
    second = _owners("tools", tools) if tools else []
    if not first and not second:
        msg = "choose a reasoning parser, a tool parser or both; both are empty"
        raise NotFoundError(msg, param="family")
    for family in first:
        if family in second:
            return family
    parts = [owners[0] if owners else None for owners in (first, second)]
    base = parts[0] or second[0]
    return msgspec.structs.replace(
        base,
        name=f"{reasoning}+{tools}",
        title=" + ".join(part.title for part in parts if part is not None),
        grammar="+".join(part.grammar if part is not None else "" for part in parts),
        template_marks=(),
        architectures=(),
    )


def by_alias(kind: Kind, name: str) -> Family:
    """The family whose reasoning parser (or tool parser) is called `name` somewhere.

    vLLM, SGLang and Dynamo write `-`, `_` or nothing between the words; all are taken. Where
    several families go by one name, the one that gives it first is meant.
    """
    return _owners(kind, name)[0]


def _owners(kind: Kind, name: str) -> list[Family]:
    found = _aliases(kind).get(_plain(name))
    if found is None:
        what = "reasoning parser" if kind == "reasoning" else "tool parser"
        raise NotFoundError(_unknown(what, name, _aliases(kind)), param="family")
    return found


@functools.cache
def _aliases(kind: Kind) -> dict[str, list[Family]]:
    """Families by alias. A family gives the names that are most its own first."""
    ranked: dict[str, list[tuple[int, Family]]] = {}
    for family in known().values():
        given = family.reasoning_aliases if kind == "reasoning" else family.tool_aliases
        for rank, alias in enumerate(given):
            ranked.setdefault(_plain(alias), []).append((rank, family))
        ranked.setdefault(_plain(family.name), []).append((_LAST, family))
    return {
        alias: [family for _, family in sorted(owners, key=lambda owner: owner[0])]
        for alias, owners in ranked.items()
    }


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


def _unknown(what: str, name: str, table: Iterable[str]) -> str:
    names = sorted(table)
    near = difflib.get_close_matches(name, names, n=3) or names
    return f"no {what} is called {name!r}; choose one of: {', '.join(near)}"


def _own() -> Iterator[Family]:
    for module in pkgutil.iter_modules(families.__path__):
        found = getattr(
            importlib.import_module(f"{families.__name__}.{module.name}"), "FAMILY", None
        )
        if isinstance(found, Family):
            yield found


def _plugged() -> Iterator[Family]:
    for point in entry_points(group=GROUP):
        found = point.load()
        if not isinstance(found, Family):
            msg = (
                f"entry point {point.value!r} of {GROUP} is a {type(found).__name__}, not a Family"
            )
            raise TypeError(msg)
        yield found
