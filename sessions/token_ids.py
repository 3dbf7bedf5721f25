"""Token ids as compact bytes: what the ledger keeps of a reply.

The bytes of all ids are laid out by place (all lowest bytes first) and deflated at the fastest
level: ids of real text take about 2 bytes each, and a long run takes almost nothing.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence

_WORD = 4


def pack(ids: Sequence[int]) -> bytes:
    """OverflowError for an id outside u32."""
    words = array("I", ids)
    if sys.byteorder == "big":
        words.byteswap()
    raw = words.tobytes()
    return zlib.compress(b"".join(raw[place::_WORD] for place in range(_WORD)), 1)


def unpack(packed: bytes) -> list[int]:
    """ValueError when the bytes are not from `pack`."""
    try:
        planes = zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"not packed token ids: {error}") from error
    if len(planes) % _WORD:
        raise ValueError(f"not packed token ids: {len(planes)} bytes are no whole words")
    count = len(planes) // _WORD
    raw = bytearray(len(planes))
    for place in range(_WORD):
        raw[place::_WORD] = planes[place * count : (place + 1) * count]
    words = array("I", bytes(raw))
    if sys.byteorder == "big":
        words.byteswap()
    return words.tolist()
