"""Sizes of pictures from their headers, and nothing but None from what is no picture."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.image_header import Header, header_of


def jpeg(width: int, height: int, *, orientation: int = 0, order: str = "<") -> bytes:
    """The segments of a JPEG up to its frame."""
    exif = b""
    if orientation:
        mark = b"II*\0" if order == "<" else b"MM\0*"
        entry = pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
        other = pack(f"{order}HHII", 0x010F, 2, 1, 0)
        body = b"Exif\0\0" + mark + pack(f"{order}IH", 8, 2) + other + entry
        exif = b"\xff\xe1" + pack(">H", len(body) + 2) + body
    table = b"\xff\xdb" + pack(">H", 4) + b"\0\0"
    frame = b"\xff\xc2" + pack(">HBHHB", 17, 8, height, width, 3)
    return b"\xff\xd8" + exif + table + b"\xff" + frame


def webp(kind: bytes, body: bytes) -> bytes:
    chunk = kind + pack("<I", len(body)) + body
    return b"RIFF" + pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + pack(">I4sII", 13, b"IHDR", width, height)


W, H = 1200, 700
GOOD = [
    pytest.param(png(W, H), "image/png", id="png"),
    pytest.param(b"GIF89a" + pack("<HH", W, H), "image/gif", id="gif"),
    pytest.param(jpeg(W, H), "image/jpeg", id="jpeg"),
    pytest.param(jpeg(W, H, orientation=3), "image/jpeg", id="jpeg-upside-down"),
    pytest.param(jpeg(H, W, orientation=6), "image/jpeg", id="jpeg-turned"),
    pytest.param(jpeg(H, W, orientation=8, order=">"), "image/jpeg", id="jpeg-turned-big-endian"),
    pytest.param(
        webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + pack("<HH", W | 0x4000, H)), "image/webp", id="webp"
    ),
    pytest.param(
        webp(b"VP8L", b"\x2f" + pack("<I", (W - 1) | (H - 1) << 14)), "image/webp", id="lossless"
    ),
    pytest.param(
        webp(b"VP8X", b"\0\0\0\0" + pack("<I", W - 1)[:3] + pack("<I", H - 1)[:3]),
        "image/webp",
        id="extended",
    ),
]


@pytest.mark.parametrize(("data", "kind"), GOOD)
def test_the_size_is_read_from_the_header_alone(data: bytes, kind: str) -> None:
    assert header_of(data) == Header(kind, W, H)
    assert header_of(data[:8]) is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<svg xmlns='http://www.w3.org/2000/svg'/>", id="svg"),
        pytest.param(png(0, 5), id="no-width"),
        pytest.param(b"\xff\xd8\xff\xda\0\x02", id="scan-before-frame"),
        pytest.param(b"\xff\xd8\xff\xe0\0\x00", id="segment-without-end"),
    ],
)
def test_what_is_no_picture_has_no_size(data: bytes) -> None:
    assert header_of(data) is None


@given(
    st.sampled_from([b"", b"\xff\xd8", b"\xff\xd8\xff\xe1", b"GIF89a", png(1, 1)[:16]]),
    st.binary(max_size=64),
)
def test_no_bytes_are_an_error(head: bytes, rest: bytes) -> None:
    header_of(head + rest)
