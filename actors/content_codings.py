"""Request bodies in the codings that clients may send: decoded, and bounded while they are.

Each decoder stops at the limit, so a small body that unfolds into a huge one costs no more than
`limit` bytes of memory; one that unfolds far beyond what any real request does is refused too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli
import zstandard

from turns.errors import InvalidRequestError, TooLargeError

SMALL = 1 << 20
"""Bytes up to which a decoded body is taken whatever its ratio: it can do no harm."""

WINDOW = 1 << 27
"""Bytes of history that a zstd frame may ask a decoder to keep (what `zstd --long` uses)."""

Decode = Callable[[bytes, int], bytes]
"""Gives at most so many bytes of what a body decodes to, and ValueError for a broken one."""


def _zlib(bits: int) -> Decode:
    def decode(body: bytes, most: int) -> bytes:
        decoder = zlib.decompressobj(bits)
        try:
            out = decoder.decompress(body, most)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        if not decoder.eof and len(out) < most:
            raise ValueError("it ends too early")
        return out

    return decode


def _deflate(body: bytes, most: int) -> bytes:
    """With the zlib header as the standard says, or without, as some clients send it."""
    wrapped = (
        len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and not (body[0] << 8 | body[1]) % 31
    )
    return _zlib(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)(body, most)


def _brotli(body: bytes, most: int) -> bytes:
    decoder = brotli.Decompressor()
    pieces: list[bytes] = []
    left = most
    try:
        while left > 0 and not decoder.is_finished():
            piece = decoder.process(body, output_buffer_limit=left)
            if not piece and not body:
                raise ValueError("it ends too early")
            pieces.append(piece)
            left -= len(piece)
            body = b""
    except brotli.error as error:
        raise ValueError(str(error)) from None
    return b"".join(pieces)[:most]


def _zstd(body: bytes, most: int) -> bytes:
    decoder = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    try:
        with decoder.stream_reader(body, read_across_frames=True) as reader:
            out = reader.read(most)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    return out


CODINGS: dict[str, Decode] = {
    "gzip": _zlib(zlib.MAX_WBITS | 16),
    "x-gzip": _zlib(zlib.MAX_WBITS | 16),
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}


def codings_of(header: str) -> list[str]:
    """The codings of a `content-encoding` header in the order in which they were applied.

    Raises InvalidRequestError for one that is not known.
    """
    names = [name.strip().lower() for name in header.split(",")]
    found = [name for name in names if name not in ("", "identity")]
    for name in found:
        if name not in CODINGS:
            known = ", ".join(CODINGS)
            raise InvalidRequestError(f"content-encoding '{name}' is none of: {known}, identity")
    return found


def decoded(body: bytes, codings: list[str], *, limit: int, ratio: float) -> bytes:
    """The body without its codings: at most `limit` bytes, and at most `ratio` times its size.

    Raises TooLargeError past either, InvalidRequestError where it cannot be decoded.
    """
    sent = len(body)
    for name in reversed(codings):
        try:
            body = CODINGS[name](body, limit + 1)
        except ValueError as error:
            raise InvalidRequestError(f"the body is not {name}: {error}") from None
        if len(body) > limit:
            raise TooLargeError(f"the decoded request body is over {limit} bytes; send less")
        if len(body) > max(SMALL, ratio * sent):
            raise TooLargeError(f"the body decodes to over {ratio:g} times its size; send it plain")
    return body
