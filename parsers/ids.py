"""Ids of calls, where a family's template takes only some."""

from __future__ import annotations

import string
from hashlib import blake2b

from parsers.emitter import Mint

_DIGITS = string.digits + string.ascii_letters
_LENGTH = 9


def nine(mint: Mint) -> Mint:
    """The minted ids as nine letters or digits: Mistral's template refuses all others."""

    def short(index: int, name: str) -> str:
        number = int.from_bytes(blake2b(mint(index, name).encode(), digest_size=8).digest())
        digits = []
        for _ in range(_LENGTH):
            number, digit = divmod(number, len(_DIGITS))
            digits.append(_DIGITS[digit])
        return "".join(digits)

    return short
