"""The cost of a turn on a replica, in tokens of prefill; lower is better.

    prefill · (prompt - overlap)  +  under_way · (prefill begun before and not over)
    + context · (tokens that active turns hold)  +  turn · (active turns)
    + waiting · (turns that wait inside the engine)

Weights say what a unit delays a new turn by, beside one token of prefill. A held context token
costs memory bandwidth at each decode step, long contexts and long answers (`osl`) more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from msgspec import Struct

from router.load import Replica


class Weights(Struct, frozen=True):
    """Defaults: ten held 50k contexts outweigh one 50k prefill, so a hot prefix gets a second home
    at about the point where its queue costs more than its prefill. Prefill under way is on average
    half done; at half its weight a burst waits for its common prefix instead of computing it again
    elsewhere.
    """

    prefill: float = 1.0
    under_way: float = 0.5
    context: float = 0.1
    turn: float = 64.0
    waiting: float = 512.0


def cost(weights: Weights, prompt_tokens: int, overlap_tokens: int, replica: Replica) -> float:
    """What the turn would cost there. An overlap never saves the whole prompt: one token runs."""
    uncached = max(1, prompt_tokens - overlap_tokens)
    return (
        weights.prefill * uncached
        + weights.under_way * (replica.prefill + replica.foreign_prefill)
        + weights.context * replica.context
        + weights.turn * replica.active
        + weights.waiting * replica.report.waiting
    )


def draw(costs: Sequence[float], temperature: float, chance: float) -> int:
    """The place of the pick among costs: softmax of the costs scaled to 0..1.

    `chance` in [0, 1) decides; temperature must be above 0 (at 0 take the least cost instead).
    """
    low, high = min(costs), max(costs)
    span = (high - low) or 1.0
    shares = [exp((low - value) / span / temperature) for value in costs]
    left = chance * sum(shares)
    for place, share in enumerate(shares):
        left -= share
        if left < 0:
            return place
    return len(shares) - 1
