"""HyperLogLog over Arrow arrays: how many distinct values, in 4 KB, at 1.6 %.

Our own because the sketch libraries take one value at a time from Python: 95 ns a row for
datasketches against 16 ns for whole arrays. The estimator is Ertl's (2017), which needs no bias
tables and no switch between ranges.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toolruns.arrays import bare

Hashes = NDArray[np.uint64]

PRECISION = 12
REGISTERS = 1 << PRECISION
_TAIL = 64 - PRECISION
_TAIL_MASK = np.uint64((1 << _TAIL) - 1)
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MASKS: Hashes = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)
LONG = 256


class HyperLogLog:
    """Add arrays, ask for the estimate, merge with another. Nulls are not counted."""

    ERROR: ClassVar[float] = 1.04 / math.sqrt(REGISTERS)

    def __init__(self) -> None:
        self._registers = np.zeros(REGISTERS, np.uint8)

    def add(self, array: Any) -> None:
        if array.null_count:
            array = array.drop_null()
        if not len(array):
            return
        hashed = hashes(array)
        # What ranks no higher than the lowest register changes nothing: of a long stream, most.
        floor = int(self._registers.min())
        if floor:
            low = np.uint64((1 << (_TAIL - floor)) - 1)
            hashed = hashed[(hashed & _TAIL_MASK) <= low]
        slots = (hashed >> np.uint64(_TAIL)).astype(np.intp)
        # The sentinel bit bounds the rank of an all-zero tail. A float64's exponent is the place
        # of the leading bit (rounding up at 2**64 - 1 is off by one in 2**53 values).
        tails = (hashed << np.uint64(PRECISION)) | np.uint64(1 << (PRECISION - 1))
        exponents = tails.astype(np.float64).view(np.uint64) >> np.uint64(52)
        ranks = (np.uint64(1023 + 64) - exponents).astype(np.uint8)
        np.maximum.at(self._registers, slots, ranks)

    def merge(self, other: HyperLogLog) -> None:
        np.maximum(self._registers, other._registers, out=self._registers)

    def estimate(self) -> float:
        counts = np.bincount(self._registers, minlength=_TAIL + 2)
        z = REGISTERS * _tau(1 - counts[_TAIL + 1] / REGISTERS)
        for rank in range(_TAIL, 0, -1):
            z = 0.5 * (z + counts[rank])
        z += REGISTERS * _sigma(counts[0] / REGISTERS)
        return REGISTERS * REGISTERS / (2 * math.log(2)) / z if z else 0.0


def _sigma(x: float) -> float:
    if x == 1.0:
        return math.inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x, before = x * x, z
        z += x * y
        y += y
    return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z, before = 1.0, 1 - x, -1.0
    while z != before:
        x, before, y = math.sqrt(x), z, y * 0.5
        z -= (1 - x) ** 2 * y
    return z / 3


def hashes(array: Any) -> Hashes:
    """64-bit hashes of an array without nulls; the same value hashes alike in every array."""
    type_ = array.type
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return _mixed(_bytes(array))
    if pa.types.is_boolean(type_):
        array = array.cast(pa.int8())
    elif pa.types.is_decimal(type_):
        array = array.cast(pa.float64(), safe=False)
    memory = bare(array)
    values = array.to_numpy(zero_copy_only=False) if memory is None else memory
    if values.dtype.kind == "f":
        # -0.0 equals 0.0, and a whole float equals the integer when the column's type changed.
        return _mixed((values.astype(np.float64) + 0.0).view(np.uint64))
    return _mixed(values.astype(np.int64, copy=False).view(np.uint64))


def _mixed(x: Hashes) -> Hashes:
    """The finaliser of splitmix64: every bit of the input moves half of the output's."""
    out = x >> np.uint64(30)
    out ^= x
    out *= np.uint64(0xBF58476D1CE4E5B9)
    out ^= out >> np.uint64(27)
    out *= np.uint64(0x94D049BB133111EB)
    out ^= out >> np.uint64(31)
    return out


def _bytes(array: Any) -> Hashes:
    """Hashes of strings, eight bytes of all of them at a time; long ones by their digest."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)[
        array.offset : array.offset + len(array) + 1
    ].astype(np.int64)
    starts, sizes = offsets[:-1] - offsets[0], np.diff(offsets)
    hashed = sizes.astype(np.uint64) * _BASE
    if not sizes.any():
        return hashed
    data = np.frombuffer(array.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].tobytes()
    padded = data + bytes(8)
    words = np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))
    longest = min(int(sizes.max()), LONG)
    for at in range(0, longest, 8):
        left = np.clip(sizes - at, 0, 8)
        word = words[np.minimum(starts + at, len(data))] & _MASKS[left]
        hashed = np.where(left > 0, _mixed(hashed ^ word) * _BASE, hashed)
    for row in np.flatnonzero(sizes > LONG):
        text = data[starts[row] : starts[row] + sizes[row]]
        hashed[row] = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return hashed
