"""The size of a picture, from its header alone: nothing is decompressed and no library is asked.

PNG, JPEG, GIF and WebP, as the public APIs take them. Sizes are in pixels, as a viewer shows the
picture: a JPEG that says so is turned.
"""

from __future__ import annotations

import struct
from struct import Struct as Layout

from msgspec import Struct

JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a start of frame; the three in between are something else."""
JPEG_MARK, JPEG_SCAN, JPEG_EXIF = 0xFF, 0xDA, 0xE1
JPEG_LENGTH = 2
"""Bytes of a segment's length, which counts itself."""
VP8L_MARK = 0x2F

_BIG = Layout(">II")
_SMALL = Layout("<HH")
_JPEG = Layout(">xHH")
_WORD = Layout("<I")
_MARKER = Layout(">BBH")
_EXIF = b"Exif\x00\x00"
_ORIENTATION = 0x0112
_TURNED = range(5, 9)
"""Orientations in which width and height change places."""


class Header(Struct, frozen=True):
    """What a header says."""

    media_type: str
    width: int
    height: int


def header_of(data: bytes) -> Header | None:
    """None for what is none of the four formats, or is broken before it says how large it is."""
    try:
        found = _read(data)
    except (struct.error, IndexError):
        return None
    return found if found and found.width and found.height else None


def _read(data: bytes) -> Header | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return Header("image/png", *_BIG.unpack_from(data, 16))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return Header("image/gif", *_SMALL.unpack_from(data, 6))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        size = _webp(data)
        return Header("image/webp", *size) if size else None
    if data.startswith(b"\xff\xd8"):
        size = _jpeg(data)
        return Header("image/jpeg", *size) if size else None
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = _SMALL.unpack_from(data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L" if data[20] == VP8L_MARK:
            (bits,) = _WORD.unpack_from(data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            (width,), (height,) = _WORD.unpack_from(data, 24), _WORD.unpack_from(data, 26)
            return (width & 0xFFFFFF) + 1, (height >> 8 & 0xFFFFFF) + 1
        case _:
            return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at, turned = 2, False
    while True:
        mark, kind, length = _MARKER.unpack_from(data, at)
        if mark != JPEG_MARK:
            return None
        if kind == JPEG_MARK:  # padding before a marker
            at += 1
            continue
        if kind in JPEG_FRAMES:
            height, width = _JPEG.unpack_from(data, at + 4)
            return (height, width) if turned else (width, height)
        if kind == JPEG_SCAN or length < JPEG_LENGTH:  # the picture itself, before any frame
            return None
        if kind == JPEG_EXIF and data.startswith(_EXIF, at + 4):
            turned = _orientation(data[at + 10 : at + JPEG_LENGTH + length]) in _TURNED
        at += JPEG_LENGTH + length


def _orientation(exif: bytes) -> int:
    """What the first directory of an Exif block says of it, 0 where it says nothing."""
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None:
        return 0
    try:
        (start,) = Layout(f"{order}I").unpack_from(exif, 4)
        (count,) = Layout(f"{order}H").unpack_from(exif, start)
        entry = Layout(f"{order}HHIH")
        for at in range(start + 2, start + 2 + 12 * count, 12):
            tag, _, _, value = entry.unpack_from(exif, at)
            if tag == _ORIENTATION:
                return int(value)
    except struct.error:
        return 0
    return 0
