from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.token_ids import pack, unpack


@given(st.lists(st.integers(0, 2**32 - 1), max_size=200))
def test_unpack_gives_back_what_was_packed(ids: list[int]) -> None:
    assert unpack(pack(ids)) == ids


def test_the_packed_form_is_one_that_other_versions_read() -> None:
    planes = bytes.fromhex("0102ff 0001ff 0000ff 0000ff")
    assert unpack(zlib.compress(planes)) == [1, 258, 2**32 - 1]


def test_a_long_run_takes_almost_nothing() -> None:
    assert len(pack([151643] * 10_000)) < 300


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"nonsense", id="not deflated"),
        pytest.param(pack([1, 2, 3])[:-5], id="cut"),
        pytest.param(zlib.compress(b"abc"), id="no whole words"),
    ],
)
def test_what_is_not_packed_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="not packed token ids"):
        unpack(packed)


@pytest.mark.parametrize("bad", [-1, 2**32])
def test_an_id_outside_u32_is_refused(bad: int) -> None:
    with pytest.raises(OverflowError):
        pack([bad])
