"""A predicate at work on a stream: bound at the first rows, then fed piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from toolruns.arrays import Kind, Mask, kind_of, seconds_of
from toolruns.predicate.aggregates import (
    Count,
    CountIf,
    Distinct,
    Extreme,
    Nulls,
    Prefix,
    Sum,
    extreme_is_text,
)
from toolruns.predicate.resolve import Columns
from toolruns.predicate.rowwise import ARITHMETIC, COMPARE, compile_rows
from toolruns.predicate.syntax import (
    MIRRORED,
    ROW_COUNTS,
    Aggregate,
    Arithmetic,
    Both,
    Compare,
    Condition,
    Constant,
    Either,
    Member,
    Op,
    Predicate,
    PredicateError,
    RowAggregate,
    Scalar,
    Seen,
    Truth,
    Value,
    Verdict,
    values,
)


class Moment(Struct):
    """What is known of the stream when a piece is judged. A chunk arrives whole: its bytes and
    the time of its arrival hold for each of its rows.
    """

    chunks: int = 0
    pages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    idle: float = 0.0

    def counter(self, name: str) -> float:
        match name:
            case "elapsed":
                return self.seconds
            case "tokens":
                return self.bytes / 4
            case _:
                return float(getattr(self, name))


class Opinions(Protocol):
    """What the synopsis concluded after the rows seen so far."""

    def converged(self, column: str) -> bool: ...

    def top_k_stable(self, chunks: int) -> bool: ...


def verdict_columns(node: Condition) -> tuple[str, ...]:
    """The columns whose convergence the predicate asks for: the synopsis must watch them."""
    match node:
        case Both(items) | Either(items):
            return tuple(name for item in items for name in verdict_columns(item))
        case Verdict(column=column) if column:
            return (column,)
        case _:
            return ()


class Watch:
    """Says at which row the predicate first holds. After it held it must not be fed again."""

    def __init__(self, predicate: Predicate, opinions: Opinions) -> None:
        self.predicate = predicate
        self._opinions = opinions
        self._columns: Columns | None = None
        self._prefixes: dict[Any, Prefix] = {}
        self._verdicts: dict[tuple[str, str, int], bool] = {}
        self.approximate = False

    def bind(self, schema: Any) -> None:
        """Bind to the first batch's columns. Raises PredicateError that names those there are."""
        columns = Columns(schema, self.predicate.text)
        self._bind(self.predicate.root, columns)
        self._columns = columns

    def feed(self, piece: Any, moment: Moment) -> int | None:
        """The index in `piece` of the first row whose prefix satisfies, None if none does.

        The synopsis must have taken the piece before, and pieces end where it judges.
        """
        if self._columns is None:
            self.bind(piece.schema)
        rows = piece.num_rows
        if rows == 0:
            return None
        table = {key: prefix.over(piece) for key, prefix in self._prefixes.items()}
        held = np.broadcast_to(self._holds(self.predicate.root, table, moment, rows), (rows,))
        self._remember(self.predicate.root)
        self.approximate = any(prefix.spread for prefix in self._prefixes.values())
        return int(np.argmax(held)) if held.any() else None

    def check(self, moment: Moment) -> bool:
        """Whether it holds now, between two chunks: time passed, or the synopsis judged."""
        table = {key: np.array([prefix.now], object) for key, prefix in self._prefixes.items()}
        table = {k: v.astype(float) if _numeric(v[0]) else v for k, v in table.items()}
        self._remember(self.predicate.root)
        return bool(np.all(self._holds(self.predicate.root, table, moment, 1)))

    def _bind(self, node: Condition, columns: Columns) -> None:
        match node:
            case Both(items) | Either(items):
                for item in items:
                    self._bind(item, columns)
            case Seen(condition):
                self._keep(_key(node), lambda: CountIf(compile_rows(condition, columns)))
            case Verdict(column=column, at=at) if column:
                columns.resolve(column, at)
            case Compare(left=left, right=right):
                self._check_kinds(left, right, columns)
            case _:
                pass
        for value in values(node) if not isinstance(node, Both | Either) else ():
            self._bind_value(value, columns)

    def _bind_value(self, value: Value, columns: Columns) -> None:
        match value:
            case Scalar(name) if name in ROW_COUNTS:
                self._keep("count", Count)
            case RowAggregate(condition):
                self._keep(_key(value), lambda: CountIf(compile_rows(condition, columns)))
            case Aggregate():
                self._keep(_key(value), lambda: _aggregate(value, columns))
            case _:
                pass

    def _keep(self, key: Any, make: Callable[[], Prefix]) -> None:
        if key not in self._prefixes:
            self._prefixes[key] = make()

    def _check_kinds(self, left: Value, right: Value, columns: Columns) -> None:
        one, other = _kind(left, columns), _kind(right, columns)
        if one == other or {one, other} == {"time", "number"}:
            return
        for side, against in ((left, other), (right, one)):
            if against == "time" and isinstance(side, Constant) and isinstance(side.value, str):
                if seconds_of(side.value) is None:
                    raise columns.error("not an ISO 8601 time", side.at)
                return
        raise columns.error(f"cannot compare {one} with {other}", right.at)

    def _holds(self, node: Condition, table: dict[Any, Any], moment: Moment, rows: int) -> Any:
        match node:
            case Both(items):
                return reduce(
                    np.logical_and, (self._holds(item, table, moment, rows) for item in items)
                )
            case Either(items):
                return reduce(
                    np.logical_or, (self._holds(item, table, moment, rows) for item in items)
                )
            case Compare(op, left, right):
                return self._compare(op, left, right, table, moment)
            case Member(value, items, negated):
                each: Op = "!=" if negated else "="
                tests = [self._compare(each, value, item, table, moment) for item in items]
                return reduce(np.logical_and if negated else np.logical_or, tests)
            case Seen(negated=negated):
                return (table[_key(node)] > 0 if _key(node) in table else np.False_) != negated
            case Verdict(negated=negated):
                return self._verdict(node, rows) != negated
            case Truth(value=Constant(value=truth), negated=negated):
                return np.bool_(truth) != negated
            case _:
                message = "a row condition cannot stand here"
                raise PredicateError(message, self.predicate.text, node.at)

    def _compare(
        self, op: Op, left: Value, right: Value, table: dict[Any, Any], moment: Moment
    ) -> Any:
        one, other = self._value(left, table, moment), self._value(right, table, moment)
        one, other = _as_times(one, other)
        if _textual(one) or _textual(other):
            return _compare_texts(op, one, other)
        one = _bounded(op, one, self._spread(left))
        other = _bounded(MIRRORED[op], other, self._spread(right))
        with np.errstate(invalid="ignore"):
            return COMPARE[op](one, other) & ~(np.isnan(one) | np.isnan(other))

    def _value(self, value: Value, table: dict[Any, Any], moment: Moment) -> Any:
        match value:
            case Constant(value=constant):
                return constant if isinstance(constant, str) else float(constant)
            case Scalar(name):
                if name in ROW_COUNTS:
                    return table.get("count", 0.0)
                return moment.counter(name)
            case Arithmetic(sign, left, right):
                one, other = self._value(left, table, moment), self._value(right, table, moment)
                if _textual(one) or _textual(other):
                    return math.nan
                with np.errstate(all="ignore"):
                    result = ARITHMETIC[sign](np.asarray(one, float), np.asarray(other, float))
                return np.where(np.isfinite(result), result, np.nan)
            case _:
                return table.get(_key(value), math.nan)

    def _spread(self, value: Value) -> float:
        prefix = self._prefixes.get(_key(value)) if isinstance(value, Aggregate) else None
        return prefix.spread if prefix else 0.0

    def _verdict(self, node: Verdict, rows: int) -> Mask:
        """The verdict as it stood over the piece; a new one comes with the piece's last row."""
        before = self._verdicts.get((node.name, node.column, node.number), False)
        over = np.full(rows, before)
        over[-1] = self._ask(node)
        return over

    def _ask(self, node: Verdict) -> bool:
        if node.name == "converged":
            column = node.column
            if column and self._columns is not None:
                column = self._columns.resolve(column, node.at)
            return self._opinions.converged(column)
        return self._opinions.top_k_stable(node.number)

    def _remember(self, node: Condition) -> None:
        match node:
            case Both(items) | Either(items):
                for item in items:
                    self._remember(item)
            case Verdict(name, column, number):
                self._verdicts[name, column, number] = self._ask(node)
            case _:
                pass


def _key(node: Any) -> Any:
    """What a value depends on, its place in the text apart: equal values are kept once."""
    match node:
        case Aggregate(fn, column, plural=plural):
            return (fn, column.lower(), plural)
        case RowAggregate(condition) | Seen(condition):
            return ("count_if", condition)
        case _:
            return node


def _aggregate(node: Aggregate, columns: Columns) -> Prefix:
    name = columns.resolve(node.column, node.at, plural=node.plural)
    text = extreme_is_text(columns.type_of(name, node.at))
    match node.fn:
        case "distinct":
            return Distinct(name)
        case "min" | "max":
            return Extreme(name, text=text, greatest=node.fn == "max")
        case "nulls" | "null_rate":
            return Nulls(name, rate=node.fn == "null_rate")
        case _:
            if text:
                raise columns.error(f"{node.fn} of {name!r}, which is text", node.at)
            return Sum(name, mean=node.fn == "avg")


def _kind(value: Value, columns: Columns) -> Kind:
    match value:
        case Constant(value=str()):
            return "text"
        case Aggregate(fn="min" | "max") | Aggregate(fn="avg"):
            name = columns.resolve(value.column, value.at)
            kind = kind_of(columns.type_of(name, value.at))
            kinds: dict[Kind, Kind] = {"other": "text", "bool": "number"}
            return kinds.get(kind, kind)
        case _:
            return "number"


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float)


def _textual(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype.kind == "O")


def _as_times(one: Any, other: Any) -> tuple[Any, Any]:
    """A text beside numbers is a time; `bind` has made sure that it is one."""
    if isinstance(one, str) and not _textual(other):
        return seconds_of(one) or math.nan, other
    if isinstance(other, str) and not _textual(one):
        return one, seconds_of(other) or math.nan
    return one, other


def _bounded(op: Op, value: Any, spread: float) -> Any:
    """An estimate's lower bound where much is asked for, its upper where little is."""
    if not spread or op in {"=", "!="}:
        return value
    return value * (1 - spread) if op in {">", ">="} else value * (1 + spread)


def _compare_texts(op: Op, one: Any, other: Any) -> Any:
    ones, others = np.broadcast_arrays(np.asarray(one, object), np.asarray(other, object))
    known = (
        isinstance(a, str) and isinstance(b, str) and bool(COMPARE[op](a, b))
        for a, b in zip(ones.flat, others.flat, strict=True)
    )
    return np.fromiter(known, bool, ones.size).reshape(ones.shape)
