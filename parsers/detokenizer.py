"""Token ids to pieces of text. Pure; O(1) per token.

A token is bytes, and a character may be spread over several tokens, so bytes are decoded
incrementally: an incomplete sequence is held until it is complete, and an invalid one becomes
U+FFFD exactly as a decode of the whole would make it. Control tokens never mix with text: each is
a piece of its own, marked `special`.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct


class Piece(Struct, frozen=True, array_like=True, gc=False):
    """Text as it came from the engine. `special`: one control token, spelled out."""

    text: str
    special: bool = False


class Detokenizer:
    """One per turn.

    `vocab` gives the bytes of each id. `special` spells the ids that are control tokens: those the
    tokenizer flags as special and those the family's grammar names. An id that is in neither gives
    nothing: an engine that pads its vocabulary must not fail a turn.
    """

    __slots__ = ("_decode", "_size", "_special", "_vocab")

    def __init__(self, vocab: Sequence[bytes], special: Mapping[int, str]) -> None:
        self._vocab = vocab
        self._size = len(vocab)
        self._special = special
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def feed(self, ids: Iterable[int]) -> list[Piece]:
        """The pieces that these ids complete; adjacent text is one piece."""
        pieces: list[Piece] = []
        run: list[bytes] = []
        special, vocab, size = self._special, self._vocab, self._size
        for token in ids:
            if token in special:
                self._close(run, pieces)
                pieces.append(Piece(special[token], special=True))
            elif 0 <= token < size:
                run.append(vocab[token])
        if run:
            text = self._decode(run[0] if len(run) == 1 else b"".join(run))
            if text:
                pieces.append(Piece(text))
        return pieces

    def spelled(self, token: int) -> bytes:
        """The bytes of one id, whatever stands beside it."""
        if token in self._special:
            return self._special[token].encode()
        return self._vocab[token] if 0 <= token < self._size else b""

    def flush(self) -> list[Piece]:
        """What is still held, at the end of the turn: an incomplete sequence is one U+FFFD."""
        text = self._decode(b"", True)
        return [Piece(text)] if text else []

    def _close(self, run: list[bytes], pieces: list[Piece]) -> None:
        """A control token ends the run of bytes before it: nothing can be completed across it."""
        text = self._decode(b"".join(run), True)
        run.clear()
        if text:
            pieces.append(Piece(text))
