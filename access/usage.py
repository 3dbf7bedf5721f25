"""What a key has used of its allowance: a window that slides, as two counts, and the open turns.

The use of the last minute is this minute's count and, of the minute before, the share that has not
yet slid out. An ingress counts its own and is told what the others count; what it is told may be a
second old, so a fleet can overshoot by what comes in within that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from access.keys import Allowance
from turns.errors import RateLimitedError

WINDOW_S = 60.0


class Usage(Struct, frozen=True, array_like=True):
    """One key at one ingress. `window` is the number of the minute since the epoch."""

    window: int = 0
    requests: int = 0
    requests_before: int = 0
    tokens: int = 0
    tokens_before: int = 0
    turns: int = 0


def rolled(usage: Usage, now: float) -> Usage:
    """The usage as it stands at `now`, in Unix seconds."""
    window = math.floor(now / WINDOW_S)
    passed = window - usage.window
    if passed <= 0:
        return usage
    return Usage(
        window=window,
        requests_before=usage.requests if passed == 1 else 0,
        tokens_before=usage.tokens if passed == 1 else 0,
        turns=usage.turns,
    )


def entered(usage: Usage, now: float) -> Usage:
    """A turn came in."""
    usage = rolled(usage, now)
    return replace(usage, requests=usage.requests + 1, turns=usage.turns + 1)


def left(usage: Usage, tokens: int, now: float) -> Usage:
    """A turn is over; it used so many tokens."""
    usage = rolled(usage, now)
    return replace(usage, tokens=usage.tokens + tokens, turns=max(0, usage.turns - 1))


def admit(allowed: Allowance, usages: Sequence[Usage], now: float) -> None:
    """Let one more turn in, `usages` being those of all ingresses; or raise RateLimitedError."""
    usages = [rolled(usage, now) for usage in usages]
    requests, tokens, turns = (
        allowed.requests_per_minute,
        allowed.tokens_per_minute,
        allowed.concurrent_turns,
    )
    if turns is not None and sum(usage.turns for usage in usages) >= turns:
        raise RateLimitedError(f"this key may have {turns} turns at a time; wait for one to end")
    if requests is not None:
        current = sum(usage.requests for usage in usages)
        before = sum(usage.requests_before for usage in usages)
        if wait := _wait(current, before, requests - 1, now):
            raise RateLimitedError(f"this key may ask {requests} times a minute", retry_after=wait)
    if tokens is not None:
        current = sum(usage.tokens for usage in usages)
        before = sum(usage.tokens_before for usage in usages)
        if wait := _wait(current, before, tokens - 1, now):
            raise RateLimitedError(f"this key may use {tokens} tokens a minute", retry_after=wait)


def _wait(current: int, before: int, most: int, now: float) -> int:
    """Seconds until no more than `most` count, if nothing else comes; 0 where it is so now."""
    gone = now % WINDOW_S
    if current + before * (1 - gone / WINDOW_S) <= most:
        return 0
    if current <= most:
        until = WINDOW_S * (1 - (most - current) / before) - gone
    else:  # this minute's count has to slide out too
        until = WINDOW_S - gone + WINDOW_S * (1 - max(0, most) / current)
    return max(1, math.ceil(until))
