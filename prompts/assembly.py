"""From pieces of text and remembered ids to the ids of a prompt."""

from __future__ import annotations

from collections.abc import Sequence

from prompts.guard import unguard
from prompts.splice import Header
from prompts.tokenizer import Tokenizer

Piece = str | Sequence[int]

_TAIL = 256


def assembled(
    tokenizer: Tokenizer, pieces: Sequence[Piece], opening: Header | None
) -> tuple[list[int], int]:
    """The ids, and how many of them stand before the reply's header: -1 where nobody knows.

    Every piece of text but the first begins behind a control token or with one, so that pieces
    are tokenised apart as they would be together.
    """
    ids: list[int] = []
    *before, last = pieces
    for piece in before:
        if not isinstance(piece, str):
            ids += piece
        elif piece:
            ids += tokenizer.encode_piece(piece, start=not ids)
    if opening is None or not isinstance(last, str) or not _opens(tokenizer, last, opening):
        ids += _ids(tokenizer, last, start=not ids)
        return ids, -1
    body = last.removesuffix(opening.opening)
    ids += _ids(tokenizer, body, start=not ids)
    at = len(ids)
    ids += _ids(tokenizer, opening.opening, start=not ids)
    return ids, at


def tail_of(tokenizer: Tokenizer, pieces: Sequence[Piece], ids: Sequence[int]) -> str:
    """The end of the prompt's text."""
    last = pieces[-1]
    if isinstance(last, str) and (len(last) >= 2 * _TAIL or len(pieces) == 1):
        return unguard(last[-2 * _TAIL :])[-_TAIL:]
    return tokenizer.decode(ids[-_TAIL:])[-_TAIL:]


def _ids(tokenizer: Tokenizer, piece: Piece, *, start: bool) -> Sequence[int]:
    if not isinstance(piece, str):
        return piece
    return tokenizer.encode_guarded(piece, start=start) if piece else ()


def _opens(tokenizer: Tokenizer, text: str, header: Header) -> bool:
    """Whether the text ends with the opening of a reply, cut off by a control token."""
    if header.opening:
        return text.endswith(header.opening)
    return any(found.end() == len(text) for found in tokenizer.controls.finditer(text[-_TAIL:]))
