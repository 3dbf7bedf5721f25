"""How many replicas a fleet should have, from what it has on its hands. Pure; seconds are `now`.

Three things fill an engine, each by itself: turns (running, and waiting anywhere), the KV cache
that they hold, and prompt tokens that nobody has computed yet. Each asks for as many replicas as
bring it to its target, and the largest number holds. Up goes at once: a fleet that waits is slow
for everybody. Down goes one replica at a time, and only after `calm_s` in which fewer would have
done, since each replica that leaves takes a warm cache along.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from msgspec import Struct


class Load(Struct, frozen=True):
    """One replica: turns running and waiting in it, the share of its KV in use, tokens to prefill,
    and how many turns it takes at once (0 is unbounded).
    """

    turns: float
    kv_used: float
    prefill_tokens: float
    max_turns: float = 0.0


class Targets(Struct, frozen=True):
    """Where a replica shall stand: shares of its places and of its KV, tokens of backlog."""

    turns: float = 0.7
    kv_used: float = 0.8
    prefill_tokens: float = 20_000.0
    calm_s: float = 300.0


def needed(loads: Sequence[Load], queued: float, targets: Targets) -> int:
    """Replicas that bring all three to their targets; `queued` turns wait at the router.

    At least 1, so that what is cold can be asked at all. Without any report it is what there was.
    """
    if not loads:
        return 1
    places = sum(load.max_turns for load in loads) / len(loads)
    turns = sum(load.turns for load in loads) + queued
    by_turns = turns / (places * targets.turns) if places else 0.0
    by_kv = sum(load.kv_used for load in loads) / targets.kv_used
    by_prefill = sum(load.prefill_tokens for load in loads) / targets.prefill_tokens
    return max(1, ceil(round(max(by_turns, by_kv, by_prefill), 6)))


def steady(
    wanted: int, current: int, calm_since: float | None, now: float, targets: Targets
) -> tuple[int, float | None]:
    """The next number of replicas, and since when fewer would have done (None: they would not).

    A fall waits for `calm_s` and takes one replica; the next one waits as long again.
    """
    if wanted >= current:
        return wanted, None
    if calm_since is None:
        return current, now
    if now - calm_since < targets.calm_s:
        return current, calm_since
    return current - 1, now
