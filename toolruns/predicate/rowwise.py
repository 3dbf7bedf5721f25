"""Conditions on single rows (`any(…)`, `count_if(…)`), compiled to Arrow kernels."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolruns.arrays import Kind, Mask, kind_of, mask_of, numbers, seconds_of
from toolruns.predicate.resolve import Columns
from toolruns.predicate.syntax import (
    MIRRORED,
    Arithmetic,
    Both,
    Compare,
    Condition,
    Constant,
    Either,
    IsNull,
    Like,
    Member,
    Op,
    Reference,
    Truth,
    Value,
)

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
COMPARE: dict[Op, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
KERNEL: dict[Op, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

Test = Callable[[Any], Mask]
"""From a batch to which of its rows satisfy the condition."""


def compile_rows(node: Condition, columns: Columns) -> Test:
    """The condition as a function of a batch. Raises PredicateError for unknown columns."""
    match node:
        case Both(items):
            return _joined([compile_rows(item, columns) for item in items], np.logical_and)
        case Either(items):
            return _joined([compile_rows(item, columns) for item in items], np.logical_or)
        case Compare(op, left, right, at):
            return _compare(op, left, right, at, columns)
        case Member(value, items, negated, at):
            each: Op = "!=" if negated else "="
            tests = [_compare(each, value, item, at, columns) for item in items]
            return _joined(tests, np.logical_and if negated else np.logical_or)
        case Like(value, pattern, negated, at):
            return _like(value, pattern, at, columns, negated=negated)
        case IsNull(value, negated, at):
            name = _name(value, at, columns, "IS NULL")
            return lambda batch: _nulls(batch, name) != negated
        case Truth(value, negated, at):
            return _truth(value, at, columns, negated=negated)
        case _:
            raise columns.error("not allowed inside a row condition", node.at)


def _joined(tests: list[Test], join: Callable[[Any, Any], Any]) -> Test:
    return lambda batch: reduce(join, (test(batch) for test in tests))


def _compare(op: Op, left: Value, right: Value, at: int, columns: Columns) -> Test:
    kinds = (_kind(left, columns), _kind(right, columns))
    if isinstance(left, Constant) and not isinstance(right, Constant):
        return _compare(MIRRORED[op], right, left, at, columns)
    if kinds == ("text", "text"):
        first, second = _text(left, columns), _text(right, columns)
        return lambda batch: mask_of(_spread(KERNEL[op](first(batch), second(batch)), batch))
    if kinds[0] == "time" and isinstance(right, Constant) and isinstance(right.value, str):
        moment = seconds_of(right.value)
        if moment is None:
            raise columns.error("not an ISO 8601 time", right.at, "e.g. '2026-01-31T00:00:00'")
        right = Constant(moment, right.at)
    elif "text" in kinds:
        hint = "quote text with ' and leave numbers bare"
        raise columns.error(f"cannot compare {kinds[0]} with {kinds[1]}", at, hint)
    one, other = _number(left, columns), _number(right, columns)
    return lambda batch: _known(op, one(batch), other(batch), batch.num_rows)


def _known(op: Op, left: Any, right: Any, rows: int) -> Mask:
    """The comparison where both sides are known; NaN is unknown, also for `!=`."""
    with np.errstate(invalid="ignore"):
        result = COMPARE[op](left, right) & ~(np.isnan(left) | np.isnan(right))
    return np.broadcast_to(result, (rows,))


def _spread(result: Any, batch: Any) -> Any:
    if isinstance(result, pa.Scalar):
        return pa.array([result.as_py()] * batch.num_rows, pa.bool_())
    return result


def _kind(value: Value, columns: Columns) -> Kind:
    match value:
        case Constant(value=str()):
            return "text"
        case Reference(column, at):
            kind = kind_of(columns.type_of(column, at))
            return "text" if kind == "other" else kind
        case _:
            return "number"


def _number(value: Value, columns: Columns) -> Callable[[Any], Any]:
    match value:
        case Constant(value=constant):
            number = float(constant)
            return lambda _batch: number
        case Reference(column, at):
            name = columns.resolve(column, at)
            if _kind(value, columns) == "text":
                raise columns.error(f"{name!r} is text, not a number", at)
            return lambda batch: _column(batch, name)
        case Arithmetic(sign, left, right):
            apply = ARITHMETIC[sign]
            one, other = _number(left, columns), _number(right, columns)
            return lambda batch: _safely(apply, one(batch), other(batch))
        case _:
            raise columns.error("not allowed inside a row condition", value.at)


def _safely(apply: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    with np.errstate(all="ignore"):
        result = apply(np.asarray(left, float), np.asarray(right, float))
    return np.where(np.isfinite(result), result, np.nan)


def _column(batch: Any, name: str) -> Any:
    index = batch.schema.get_field_index(name)
    return numbers(batch.column(index)) if index >= 0 else np.full(batch.num_rows, np.nan)


def _nulls(batch: Any, name: str) -> Mask:
    index = batch.schema.get_field_index(name)
    if index < 0:
        return np.ones(batch.num_rows, bool)
    return mask_of(batch.column(index).is_null())


def _text(value: Value, columns: Columns) -> Callable[[Any], Any]:
    match value:
        case Constant(value=str(constant)):
            return lambda _batch: pa.scalar(constant, pa.string())
        case Reference(column, at):
            name = columns.resolve(column, at)
            return lambda batch: _texts(batch, name)
        case _:
            raise columns.error("not a text", value.at)


def _texts(batch: Any, name: str) -> Any:
    index = batch.schema.get_field_index(name)
    if index < 0:
        return pa.nulls(batch.num_rows, pa.string())
    array = batch.column(index)
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def _like(value: Value, pattern: str, at: int, columns: Columns, *, negated: bool) -> Test:
    name = _name(value, at, columns, "LIKE")

    def test(batch: Any) -> Mask:
        texts = _texts(batch, name)
        matched = pc.match_like(texts, pattern)  # RE2: linear in the text, whatever the pattern
        return mask_of(pc.invert(matched) if negated else matched)

    return test


def _name(value: Value, at: int, columns: Columns, what: str) -> str:
    if not isinstance(value, Reference):
        raise columns.error(f"{what} takes a column", at)
    return columns.resolve(value.column, value.at)


def _truth(value: Value, at: int, columns: Columns, *, negated: bool) -> Test:
    if isinstance(value, Constant):
        truth = bool(value.value) != negated
        return lambda batch: np.full(batch.num_rows, truth)
    name = _name(value, at, columns, "a condition")
    if _kind(value, columns) != "bool":
        raise columns.error(f"{name!r} is not a boolean", at, f"e.g. {name} = 1")
    wanted = 0.0 if negated else 1.0
    return lambda batch: _column(batch, name) == wanted
