"""Fitting a prompt that is too long into the model's window, where its client asked for that.

Responses' `truncation: auto`. Each try renders the whole, so the place to cut is found by halving.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from actors.replay import Prepared
from prompts.fitting import shortened
from turns.turn import Turn

Prepare = Callable[[Turn], Awaitable[Prepared]]


def asked(turn: Turn) -> bool:
    """Whether the client would rather lose the beginning of its conversation than be refused."""
    return bool(turn.echo.get("truncate"))


async def fitted(prepare: Prepare, whole: Prepared, window: int) -> tuple[Prepared, int]:
    """The turn with as many of its messages as fit, and how many do not. Where none of it does, the
    whole comes back: it is refused like any other.
    """
    turn = whole.turn
    most = window - 1 - min(turn.sampling.max_tokens or 0, window // 4)
    shorter = shortened(turn.messages)
    low, high = 0, len(shorter)
    best: Prepared | None = None
    while low < high:
        middle = (low + high) // 2
        tried = await prepare(replace(turn, messages=shorter[middle]))
        if len(tried.prompt.ids) <= most:
            best, high = tried, middle
        else:
            low = middle + 1
    if best is None:
        return whole, 0
    return best, len(turn.messages) - len(best.turn.messages)
