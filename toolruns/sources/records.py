"""From Python values to Arrow batches that keep their types from one batch to the next."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from toolruns.arrays import as_json

_PLAIN = (bool, int, float, str, bytes, decimal.Decimal, dt.date, dt.time, dt.timedelta)


class Records:
    """Builds the batches of one stream. A column that changes its mind widens: integers become
    floats, anything else text; it never narrows again, so that a stream keeps one type.
    """

    def __init__(self) -> None:
        self._types: dict[str, Any] = {}

    def batch(self, records: Iterable[Any]) -> Any:
        """A batch of JSON records. What is no object becomes the column `value`; a key that a
        record lacks is null there, and a key once seen stays a column.
        """
        rows = [record if isinstance(record, dict) else {"value": record} for record in records]
        names = list(self._types)
        known = set(names)
        for row in rows:
            fresh = [name for name in row if name not in known]
            names += fresh
            known.update(fresh)
        return self.columns(
            [str(name) for name in names], [[row.get(name) for row in rows] for name in names]
        )

    def columns(self, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> Any:
        """A batch of columns; values may be of any kind."""
        arrays = [self._array(name, values) for name, values in zip(names, columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(names))

    def _array(self, name: str, values: Sequence[Any]) -> Any:
        known = self._types.get(name)
        if all(value is None for value in values):
            return pa.nulls(len(values), known or pa.string())
        array = _inferred(values)
        if array is not None and known is not None:
            array = _joined(known, array)
        if array is None:
            array = pa.array([None if v is None else _text(v) for v in values], pa.string())
        self._types[name] = array.type
        return array


def _inferred(values: Sequence[Any]) -> Any:
    """The array that the values make by themselves; None when they are not of one kind."""
    if any(isinstance(value, decimal.Decimal) for value in values):
        values = [_exact_float(v) if isinstance(v, decimal.Decimal) else v for v in values]
    try:
        return pa.array([v if v is None or isinstance(v, _PLAIN) else _written(v) for v in values])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None


def _joined(known: Any, array: Any) -> Any:
    """The array in the column's type, or in floats where integers met them; None if neither fits.

    Arrow would also cast 1.5 to 1, or true to 1, on request: only what loses nothing is asked for.
    """
    if array.type == known:
        return array
    both = (known, array.type)
    if all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in both):
        return array.cast(pa.float64(), safe=False)
    return None


def _exact_float(value: decimal.Decimal) -> Any:
    """The float that prints as the decimal, or its text where no float does."""
    number = float(value)
    return number if decimal.Decimal(repr(number)) == value else str(value)


def _written(value: Any) -> str:
    return as_json(value) if isinstance(value, list | dict | tuple) else str(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)


def dig(value: Any, path: str) -> Any:
    """What stands at a dotted path of keys and list positions, None where there is nothing."""
    for step in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
