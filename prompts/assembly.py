"""From pieces of text and remembered ids to the ids of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prompts.guard import unguard
from prompts.splice import Header
from prompts.tokenizer import Tokenizer

Piece = str | Sequence[int]
Spread = Callable[[Sequence[int], int], Sequence[int]]
"""Takes the ids of a text, and how many stand before them; gives what they are in the prompt."""

_TAIL = 256


def _as_it_is(ids: Sequence[int], _: int) -> Sequence[int]:
    return ids


def assembled(
    tokenizer: Tokenizer,
    pieces: Sequence[Piece],
    opening: Header | None,
    spread: Spread = _as_it_is,
) -> tuple[list[int], int]:
    """The ids, and how many of them stand before the reply's header: -1 where nobody knows.

    Every piece of text but the first begins behind a control token or with one, so that pieces
    are tokenised apart as they would be together. What a model said is never spread.
    """
    ids: list[int] = []
    *before, last = pieces
    for piece in before:
        if not isinstance(piece, str):
            ids += piece
        elif piece:
            ids += spread(tokenizer.encode_piece(piece, start=not ids), len(ids))
    if not isinstance(last, str):
        ids += last
        return ids, -1
    if opening is None or not _opens(tokenizer, last, opening):
        ids += spread(_ids(tokenizer, last, start=not ids), len(ids))
        return ids, -1
    body = last.removesuffix(opening.opening)
    ids += spread(_ids(tokenizer, body, start=not ids), len(ids))
    at = len(ids)
    ids += _ids(tokenizer, opening.opening, start=not ids)
    return ids, at


def tail_of(tokenizer: Tokenizer, pieces: Sequence[Piece], ids: Sequence[int]) -> str:
    """The end of the prompt's text."""
    last = pieces[-1]
    if isinstance(last, str) and (len(last) >= 2 * _TAIL or len(pieces) == 1):
        return unguard(last[-2 * _TAIL :])[-_TAIL:]
    return tokenizer.decode(ids[-_TAIL:])[-_TAIL:]


def _ids(tokenizer: Tokenizer, text: str, *, start: bool) -> Sequence[int]:
    return tokenizer.encode_guarded(text, start=start) if text else ()


def _opens(tokenizer: Tokenizer, text: str, header: Header) -> bool:
    """Whether the text ends with the opening of a reply, cut off by a control token."""
    if header.opening:
        return text.endswith(header.opening)
    return any(found.end() == len(text) for found in tokenizer.controls.finditer(text[-_TAIL:]))
