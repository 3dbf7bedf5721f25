"""Plans: a small graph of streaming calls, each with its own stop condition, run under one budget.

A node may wait for others, and take values from their rows: an argument of the form
`{"$from": "orders", "column": "user_id"}` becomes the distinct values of that column. What can run
together does. Pure: this says what is ready and how long it may take; others run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

MOST_NODES = 8
MOST_VALUES = 200

Take = Literal["values", "first", "count", "min", "max"]


class PlanError(ValueError):
    """The plan cannot be run; the message names the node and says what is wrong."""


class Reference(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a node takes from another's rows: distinct `values`, the `first`, or one number."""

    source: str = field(name="$from")
    column: str = ""
    take: Take = "values"
    limit: int = MOST_VALUES


class Node(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One call. `arguments` are those of the tool, `consume_until` and the like included."""

    id: str
    tool: str
    arguments: dict[str, Any] = {}
    after: tuple[str, ...] = ()

    def needs(self) -> frozenset[str]:
        """The nodes that must be over before this one can begin."""
        return frozenset(self.after) | {r.source for _, r in references(self.arguments)}


class Plan(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    nodes: tuple[Node, ...]
    max_seconds: float = 30.0

    def ready(self, begun: frozenset[str], over: frozenset[str]) -> list[Node]:
        """Nodes that have not begun and wait for nothing any more."""
        return [n for n in self.nodes if n.id not in begun and n.needs() <= over]

    def depth(self, node: str) -> int:
        """How many calls follow one another from this node on, itself included."""
        after = [n.id for n in self.nodes if node in n.needs()]
        return 1 + max((self.depth(other) for other in after), default=0)

    def seconds(self, node: str, left: float) -> float:
        """What a node may take of the `left` seconds: what waits for it needs the rest."""
        return max(0.0, left) / self.depth(node)


def parse_plan(arguments: Mapping[str, Any], tools: frozenset[str]) -> Plan:
    """The plan of a call's arguments, checked: known tools, no cycle, no reference to nowhere."""
    try:
        plan = msgspec.convert(dict(arguments), Plan)
        found = {node.id: node.needs() for node in plan.nodes}
    except msgspec.ValidationError as error:
        raise PlanError(str(error)) from None
    if not 0 < len(plan.nodes) <= MOST_NODES:
        message = f"a plan has 1 to {MOST_NODES} nodes"
        raise PlanError(message)
    if len(found) < len(plan.nodes):
        message = "two nodes have the same id"
        raise PlanError(message)
    for node in plan.nodes:
        if node.tool not in tools:
            message = f"{node.id}: no streaming tool {node.tool!r}"
            raise PlanError(message)
        unknown = sorted(node.needs() - set(found))
        if unknown:
            message = f"{node.id}: no node {unknown[0]!r}"
            raise PlanError(message)
    _no_cycle(found)
    if not 0 < plan.max_seconds <= 3600:  # noqa: PLR2004 (an hour)
        message = "max_seconds must be above 0 and at most 3600"
        raise PlanError(message)
    return plan


def references(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Reference]]:
    """Every reference in the arguments, with the path to it."""
    if isinstance(value, dict):
        if "$from" in value:
            yield path, msgspec.convert(value, Reference)
            return
        for key, item in value.items():
            yield from references(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from references(item, (*path, index))


def filled(value: Any, values: Mapping[tuple[str | int, ...], Any], path: Any = ()) -> Any:
    """The arguments with every reference replaced by what it stands for."""
    if path in values:
        return values[path]
    if isinstance(value, dict):
        return {key: filled(item, values, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values, (*path, index)) for index, item in enumerate(value)]
    return value


def _no_cycle(needs: Mapping[str, frozenset[str]]) -> None:
    over: set[str] = set()
    while len(over) < len(needs):
        free = {node for node, before in needs.items() if node not in over and before <= over}
        if not free:
            stuck = ", ".join(sorted(set(needs) - over))
            message = f"these nodes wait for one another: {stuck}"
            raise PlanError(message)
        over |= free
