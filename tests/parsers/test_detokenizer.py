from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.detokenizer import Detokenizer, Piece

BYTES = [bytes([n]) for n in range(256)]
THINK = {256: "<think>"}


def spell(text: str) -> list[int]:
    return list(text.encode())


def pieces(frames: list[list[int]]) -> list[Piece]:
    detokenizer = Detokenizer(BYTES, THINK)
    return [p for frame in frames for p in detokenizer.feed(frame)] + detokenizer.flush()


def joined(frames: list[list[int]]) -> str:
    return "".join(piece.text for piece in pieces(frames))


def test_a_character_comes_out_with_its_last_byte() -> None:
    detokenizer = Detokenizer(BYTES, THINK)
    assert [detokenizer.feed([byte]) for byte in "é".encode()] == [[], [Piece("é")]]


def test_a_control_token_is_a_piece_of_its_own() -> None:
    found = pieces([[*spell("a"), 256, *spell("b")]])
    assert found == [Piece("a"), Piece("<think>", special=True), Piece("b")]


def test_text_that_spells_a_control_token_is_text() -> None:
    assert pieces([spell("<think>")]) == [Piece("<think>")]


def test_an_incomplete_character_at_the_end_is_one_replacement() -> None:
    assert joined([[0xF0, 0x9F, 0x9A]]) == "\ufffd"


def test_a_control_token_ends_the_character_before_it() -> None:
    assert [piece.text for piece in pieces([[0xC3, 256, 0xA9]])] == ["\ufffd", "<think>", "\ufffd"]


@pytest.mark.parametrize("token", [-1, 300, 10**9], ids=["negative", "beyond", "far-beyond"])
def test_an_id_outside_the_vocabulary_says_nothing(token: int) -> None:
    assert pieces([[token, *spell("a")]]) == [Piece("a")]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=4), max_size=20), st.data())
def test_any_grouping_decodes_like_the_whole(vocab: list[bytes], data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, max(0, len(vocab) - 1)), max_size=20)) if vocab else []
    sizes = data.draw(st.integers(1, 5))
    detokenizer = Detokenizer(vocab, {})
    got = [p for at in range(0, len(ids), sizes) for p in detokenizer.feed(ids[at : at + sizes])]
    text = "".join(piece.text for piece in got + detokenizer.flush())
    assert text == b"".join(vocab[n] for n in ids).decode("utf-8", "replace")
