"""Budgets: what a call may spend, and who set the bound.

A budget is granted once for each leg of a run (the call, and every `stream_continue`). The tightest
bound wins and its origin is kept, because the model is told why it was cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct

from toolruns.contract import Defaults

Origin = Literal["argument", "default", "harness", "session"]

FLOOR_SECONDS = 1.0
"""Decay never grants less than this while the session has that much left."""
HARNESS_SHARE = 0.8
"""The part of a harness's own tool timeout that we use: the answer must still travel."""
TASK_SHARE = 0.25
"""No call may take more than this of what is left of a task's token budget."""
CONTEXT_SHARE = 0.02
SYNOPSIS_TOKENS = (96, 512)
BYTES_PER_TOKEN = 4
MOST = 1e12
"""What is over it is no number that anything real has left."""

N = TypeVar("N", int, float)


class Budget(Struct, frozen=True):
    """The limits of one leg. Seconds of wall clock, rows and bytes as read, tokens as shown."""

    rows: int
    bytes: int
    tokens: int
    seconds: float
    idle_seconds: float
    yield_after: float
    hold_seconds: float = 60.0
    synopsis_bytes: int = 2048
    origin: Origin = "default"


class Wish(Struct, frozen=True):
    """What the caller asked for; None where it said nothing."""

    max_rows: int | None = None
    max_seconds: float | None = None


class Harness(Struct, frozen=True):
    """What is known of the client program. `timeout` is its own limit on a tool call, seconds."""

    name: str = ""
    timeout: float = 56.0
    progress_extends: bool = False


class Purse(Struct, frozen=True):
    """What the session that made the call has left; None where nothing is known.

    `deadline` is seconds until the request's deadline, `context` the free tokens of the window,
    `task_tokens` what remains of an Anthropic `task_budget`. `further_calls` is how many more tool
    calls the session is expected to make, `concurrent` how many run now, this one included.
    """

    deadline: float | None = None
    context: int | None = None
    task_tokens: int | None = None
    further_calls: float = 0.0
    concurrent: int = 1


def purse_from(value: Any) -> Purse | None:
    """What a caller says of itself that it has left; None where it says nothing that can be read.
    It is believed because it can only make a budget tighter.
    """
    if not isinstance(value, Mapping):
        return None
    context, tokens = _number(value, "context"), _number(value, "tokens")
    return Purse(
        deadline=_number(value, "seconds"),
        context=None if context is None else int(context),
        task_tokens=None if tokens is None else int(tokens),
        further_calls=_number(value, "furtherCalls") or 0.0,
        concurrent=max(1, int(_number(value, "concurrent") or 1)),
    )


def _number(value: Mapping[str, Any], name: str) -> float | None:
    """A finite number that is not negative."""
    found = value.get(name)
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    return float(found) if 0 <= found < MOST else None


def tighter(one: Purse | None, other: Purse | None) -> Purse | None:
    """The purse that satisfies both."""
    if one is None or other is None:
        return one or other
    return Purse(
        deadline=_least(one.deadline, other.deadline),
        context=_least(one.context, other.context),
        task_tokens=_least(one.task_tokens, other.task_tokens),
        further_calls=max(one.further_calls, other.further_calls),
        concurrent=max(one.concurrent, other.concurrent),
    )


def _least(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def share(left: float, further_calls: float, concurrent: int) -> float:
    """Seconds of `left` that this call may take when more calls will follow it.

    One part of (1 + further calls), split among those that run now, at least `FLOOR_SECONDS`,
    never more than what is left.
    """
    part = left / (1.0 + max(0.0, further_calls)) / max(1, concurrent)
    return max(0.0, min(left, max(FLOOR_SECONDS, part)))


def grant(
    defaults: Defaults,
    *,
    wish: Wish | None = None,
    harness: Harness | None = None,
    purse: Purse | None = None,
) -> Budget:
    """The budget of a leg: the tightest of what the caller wished and what it inherits.

    A wish replaces the contract's default; nothing replaces the harness's timeout or the session's
    remaining time. A harness timeout bounds a leg by its yield, so a call longer than the harness
    allows goes on after `stream_continue` instead of dying.
    """
    wish, harness, purse = wish or Wish(), harness or Harness(), purse or Purse()
    asked = wish.max_seconds is not None
    seconds = wish.max_seconds if wish.max_seconds is not None else defaults.max_seconds
    origin: Origin = "argument" if asked else "default"
    if purse.deadline is not None:
        inherited = share(purse.deadline, purse.further_calls, purse.concurrent)
        if inherited < seconds:
            seconds, origin = inherited, "session"
    answer_by = harness.timeout * HARNESS_SHARE
    yield_after = min(defaults.yield_after_seconds, answer_by)
    if asked and origin == "argument":
        # Who names a time wants one answer after it, so far as the client waits that long.
        yield_after = answer_by
    tokens, synopsis_bytes = _context(defaults, purse)
    return Budget(
        rows=wish.max_rows if wish.max_rows is not None else defaults.max_rows,
        bytes=defaults.max_bytes,
        tokens=tokens,
        seconds=seconds,
        idle_seconds=defaults.idle_seconds,
        yield_after=yield_after,
        synopsis_bytes=synopsis_bytes,
        origin=origin,
    )


def _context(defaults: Defaults, purse: Purse) -> tuple[int, int]:
    """Tokens that all of a leg's synopses may take, and the bytes of one of them."""
    least, most = SYNOPSIS_TOKENS
    tokens, one = defaults.max_tokens, most
    if purse.context is not None:
        one = max(least, min(one, int(purse.context * CONTEXT_SHARE)))
        tokens = min(tokens, max(one, purse.context // 4))
    if purse.task_tokens is not None:
        tokens = min(tokens, max(least, int(purse.task_tokens * TASK_SHARE)))
    return tokens, min(one * BYTES_PER_TOKEN, 2048)


def tokens_of(text_bytes: int) -> int:
    """Tokens that so many bytes of synopsis are taken for; rounded up."""
    return -(-text_bytes // BYTES_PER_TOKEN)
