"""Arrow columns as numpy arrays, in the four kinds that predicates and synopses know.

Times become seconds since the epoch (UTC), booleans 0 and 1, decimals floats. A null is NaN among
numbers and None among texts. Nested values are compared by their JSON text.
"""

from __future__ import annotations

import datetime as dt
import json
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Kind = Literal["number", "time", "text", "bool", "other"]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@lru_cache(256)
def kind_of(type_: Any) -> Kind:
    """Which of the kinds an Arrow type is; `other` is nested, binary or unknown."""
    checks: tuple[tuple[Kind, tuple[Any, ...]], ...] = (
        ("bool", (pa.types.is_boolean,)),
        ("number", (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)),
        ("number", (pa.types.is_time, pa.types.is_duration)),
        ("time", (pa.types.is_timestamp, pa.types.is_date)),
        ("text", (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)),
    )
    for kind, tests in checks:
        if any(test(type_) for test in tests):
            return kind
    return "other"


def plain(batch: Any) -> Any:
    """The batch with dictionary, view and nested columns written out, durations as seconds."""
    if _is_plain(batch.schema):
        return batch
    arrays = [_plain(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


@lru_cache(256)
def _is_plain(schema: Any) -> bool:
    """Whether `_plain` would change nothing; asked for every piece, so remembered by schema."""
    return all(_plain(empty) is empty for empty in (pa.array([], f.type) for f in schema))


def _plain(array: Any) -> Any:
    if pa.types.is_dictionary(array.type):
        return _plain(array.dictionary_decode())
    if pa.types.is_string_view(array.type) or pa.types.is_large_string(array.type):
        return array.cast(pa.string())
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    if pa.types.is_duration(array.type):
        return pa.array(numbers(array), pa.float64(), from_pandas=True)
    if pa.types.is_nested(array.type) or kind_of(array.type) == "other":
        return pa.array([None if v is None else as_json(v) for v in array.to_pylist()], pa.string())
    return array


def as_json(value: Any) -> str:
    """JSON text of any value; what JSON does not know is written as its string."""
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


def bare(array: Any) -> Any:
    """The numbers that a column of numbers or times without nulls consists of, else None.

    On batches of some thousand rows numpy is several times faster than Arrow's kernels.
    """
    width = _bare_width(array.type)
    if array.null_count or width is None:
        return None
    return (array.view(width) if width != array.type else array).to_numpy()


@lru_cache(256)
def _bare_width(type_: Any) -> Any:
    """The type under which numpy takes the memory as it is."""
    if pa.types.is_integer(type_) or pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return type_
    if pa.types.is_temporal(type_) and not pa.types.is_interval(type_):
        return pa.int32() if type_.bit_width == pa.int32().bit_width else pa.int64()
    return None


def numbers(array: Any) -> Floats:
    """A number, time or bool column as float64, NaN where null."""
    memory = None if pa.types.is_temporal(array.type) else bare(array)
    if memory is not None:
        floats: Floats = memory.astype(np.float64, copy=False)
        return floats
    kind, type_ = kind_of(array.type), array.type
    scale = 1.0
    if kind == "time" and pa.types.is_date(type_):
        array = array.cast(pa.timestamp("s"))
        type_ = array.type
    if pa.types.is_temporal(type_):
        scale = float(PER_SECOND[type_.unit])
        width = pa.int32() if pa.types.is_time32(type_) else pa.int64()
        array = array.cast(width)
    if not pa.types.is_float64(array.type):
        array = array.cast(pa.float64(), safe=False)
    if array.null_count:
        array = pc.fill_null(array, float("nan"))
    out: Floats = array.to_numpy(zero_copy_only=False)
    return out / scale if scale != 1.0 else out


def listed(array: Any) -> list[Any]:
    """The values of an array without nulls; by way of numpy, which is several times faster."""
    if pa.types.is_temporal(array.type) or pa.types.is_decimal(array.type):
        values: list[Any] = array.to_pylist()
    else:
        values = array.to_numpy(zero_copy_only=False).tolist()
    return values


def mask_of(array: Any) -> Mask:
    """A boolean column as numpy booleans, False where null."""
    out: Mask = pc.fill_null(array, fill_value=False).to_numpy(zero_copy_only=False)
    return out


def seconds_of(text: str) -> float | None:
    """Seconds since the epoch of an ISO 8601 text; None when it is none. Naive means UTC."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment.timestamp()
