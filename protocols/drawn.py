"""Logprobs: how likely each token of a text was, as both OpenAI APIs spell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protocols.bodies import invalid
from turns.events import Drawn

MOST = 20
LEAST = -9999.0
"""What OpenAI says of a token that could not be drawn at all; JSON knows no infinity."""


def wanted(top: int | None, *, asked: bool) -> int | None:
    """How many of the likeliest tokens are wanted beside each, None where nothing is."""
    if top is not None and not 0 <= top <= MOST:
        raise invalid("top_logprobs", f"Input should be from 0 to {MOST}")
    return (top or 0) if asked or top else None


def spelled(drawn: Sequence[Drawn]) -> list[dict[str, Any]]:
    return [
        _one(token.token, token.logprob)
        | {"top_logprobs": [_one(name, logprob) for name, logprob in token.top]}
        for token in drawn
    ]


def _one(token: bytes, logprob: float) -> dict[str, Any]:
    return {
        "token": token.decode(errors="replace"),
        "bytes": list(token),
        "logprob": max(logprob, LEAST),
    }
