"""Coded bodies: what was sent comes out, and nothing that unfolds past the limits does."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.content_codings import CODINGS, SMALL, codings_of, decoded
from turns.errors import InvalidRequestError, TooLargeError


def bare_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
EACH = pytest.mark.parametrize("name", ENCODE)
ROOM = {"limit": 4 * SMALL, "ratio": 200.0}


def test_every_coding_is_tried() -> None:
    assert set(ENCODE) == set(CODINGS)


@EACH
@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=4000))
def test_a_body_comes_out_as_it_was(name: str, body: bytes) -> None:
    assert decoded(ENCODE[name](body), [name], **ROOM) == body


def test_codings_are_undone_in_the_order_of_the_header() -> None:
    body = brotli.compress(gzip.compress(b"{}"))
    assert decoded(body, codings_of("gzip, identity, BR"), **ROOM) == b"{}"


def test_deflate_may_lack_its_header() -> None:
    assert decoded(bare_deflate(b'{"a":1}' * 9), ["deflate"], **ROOM) == b'{"a":1}' * 9


def test_zstd_may_be_several_frames() -> None:
    pack = ENCODE["zstd"]
    assert decoded(pack(b"[1") + pack(b"]"), ["zstd"], **ROOM) == b"[1]"


@EACH
def test_a_bomb_is_refused_at_the_limit(name: str) -> None:
    bomb = ENCODE[name](bytes(32 * SMALL))
    with pytest.raises(TooLargeError, match="over 4194304 bytes"):
        decoded(bomb, [name], limit=4 * SMALL, ratio=1e9)


@EACH
def test_a_body_that_unfolds_too_far_is_refused(name: str) -> None:
    bomb = ENCODE[name](bytes(2 * SMALL))
    with pytest.raises(TooLargeError, match="times its size"):
        decoded(bomb, [name], limit=4 * SMALL, ratio=100.0)
    small = ENCODE[name](bytes(SMALL))
    assert len(decoded(small, [name], limit=4 * SMALL, ratio=100.0)) == SMALL


@EACH
@settings(max_examples=60, deadline=None)
@given(
    body=st.binary(min_size=1, max_size=200), cut=st.integers(0, 300), junk=st.binary(max_size=9)
)
def test_a_broken_body_never_crashes(name: str, body: bytes, cut: int, junk: bytes) -> None:
    sent = ENCODE[name](body)[:cut] + junk
    try:
        out = decoded(sent, [name], **ROOM)
    except InvalidRequestError as error:
        assert name in error.message  # noqa: PT017 - either outcome is right
    else:
        assert len(out) <= 200 + len(junk) * 2**15


@EACH
def test_what_is_not_coded_so_is_said_plainly(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"the body is not {name}"):
        decoded(b"\xff\xfe not coded at all", [name], **ROOM)


def test_an_unknown_coding_names_those_there_are() -> None:
    with pytest.raises(InvalidRequestError, match="'lzma' is none of: gzip"):
        codings_of("gzip, lzma")
