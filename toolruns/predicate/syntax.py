"""The tree of a predicate. `at` is the offset in the text, for errors.

Negation never stands in the tree: the parser pushes it down to the leaves, so that a comparison
with an unknown value is false on both sides of a NOT.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Op = Literal["=", "!=", "<", "<=", ">", ">="]
Sign = Literal["+", "-", "*", "/"]

NEGATED: dict[Op, Op] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED: dict[Op, Op] = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

ROW_COUNTS = ("count", "rows")
STREAM_SCALARS = ("chunks", "pages", "bytes", "tokens", "seconds", "elapsed", "idle")
COLUMN_FUNCTIONS = ("distinct", "min", "max", "sum", "avg", "nulls", "null_rate")
ROW_FUNCTIONS = ("count_if", "any")
VERDICTS = ("converged", "top_k_stable")
CLOCKED = frozenset({"seconds", "elapsed", "idle"})


class PredicateError(ValueError):
    """The predicate cannot be used; `column`, where it goes wrong, counts characters from 1."""

    def __init__(self, message: str, text: str, at: int, hint: str = "") -> None:
        self.column = at + 1
        start = max(0, at - 60)
        line = text[start : start + 120].replace("\n", " ")
        pointer = " " * (at - start) + "^"
        tail = f"\nhint: {hint}" if hint else ""
        super().__init__(
            f"consume_until: {message} at column {self.column}\n  {line}\n  {pointer}{tail}"
        )


class Constant(Struct, frozen=True):
    value: float | str | bool
    at: int


class Scalar(Struct, frozen=True):
    """A counter of the stream, such as `count` or `seconds`."""

    name: str
    at: int


class Aggregate(Struct, frozen=True):
    """`fn(column)`; `at` is the column's place. `plural`: it was written `distinct_<column>s`."""

    fn: str
    column: str
    at: int
    plural: bool = False


class RowAggregate(Struct, frozen=True):
    """`count_if(condition)`: the condition speaks of one row's columns."""

    condition: Condition
    at: int


class Reference(Struct, frozen=True):
    """A column's value in one row; only inside `count_if` and `any`."""

    column: str
    at: int


class Arithmetic(Struct, frozen=True):
    sign: Sign
    left: Value
    right: Value
    at: int


Value = Constant | Scalar | Aggregate | RowAggregate | Reference | Arithmetic


class Compare(Struct, frozen=True):
    op: Op
    left: Value
    right: Value
    at: int


class Member(Struct, frozen=True):
    value: Value
    items: tuple[Constant, ...]
    negated: bool
    at: int


class Like(Struct, frozen=True):
    value: Value
    pattern: str
    negated: bool
    at: int


class IsNull(Struct, frozen=True):
    value: Value
    negated: bool
    at: int


class Seen(Struct, frozen=True):
    """`any(condition)`: some row so far satisfied it."""

    condition: Condition
    negated: bool
    at: int


class Verdict(Struct, frozen=True):
    """`converged`, `converged(column)` or `top_k_stable(n)`: what the synopsis concluded."""

    name: str
    column: str
    number: int
    negated: bool
    at: int


class Truth(Struct, frozen=True):
    """TRUE or FALSE, or a boolean column inside a row condition (`value` set)."""

    value: Value
    negated: bool
    at: int


class Both(Struct, frozen=True):
    items: tuple[Condition, ...]


class Either(Struct, frozen=True):
    items: tuple[Condition, ...]


Condition = Compare | Member | Like | IsNull | Seen | Verdict | Truth | Both | Either


class Predicate(Struct, frozen=True):
    """A parsed predicate, not yet bound to columns. `clocked`: time alone can satisfy it."""

    text: str
    root: Condition
    clocked: bool = False


def negate(node: Condition) -> Condition:
    """The opposite of a condition, pushed down to the leaves."""
    match node:
        case Compare(op, left, right, at):
            return Compare(NEGATED[op], left, right, at)
        case Both(items):
            return Either(tuple(negate(item) for item in items))
        case Either(items):
            return Both(tuple(negate(item) for item in items))
        case Member(value, items, negated, at):
            return Member(value, items, not negated, at)
        case Like(value, pattern, negated, at):
            return Like(value, pattern, not negated, at)
        case IsNull(value, negated, at):
            return IsNull(value, not negated, at)
        case Seen(condition, negated, at):
            return Seen(condition, not negated, at)
        case Verdict(name, column, number, negated, at):
            return Verdict(name, column, number, not negated, at)
        case Truth(value, negated, at):
            return Truth(value, not negated, at)


def values(node: Condition) -> Iterator[Value]:
    """Every value in the tree, row conditions excepted, arithmetic before its parts."""
    match node:
        case Both(items) | Either(items):
            for item in items:
                yield from values(item)
        case Compare(left=left, right=right):
            yield from _parts(left)
            yield from _parts(right)
        case Member(value=value) | Like(value=value) | IsNull(value=value) | Truth(value=value):
            yield from _parts(value)
        case Seen() | Verdict():
            return


def _parts(value: Value) -> Iterator[Value]:
    yield value
    if isinstance(value, Arithmetic):
        yield from _parts(value.left)
        yield from _parts(value.right)
