"""The cost of a turn on a replica, in tokens of prefill; lower is better.

    prefill · (prompt - overlap)  +  under_way · (prefill begun before and not over)
    + decode · (tokens that active turns are expected to say beside it)  +  turn · (active turns)
    + context · (tokens that active turns hold)  +  waiting · (turns that wait inside the engine)
    + disturb · (prompt - overlap) · (active turns that mind slow tokens)

Weights say what a unit delays a new turn by, beside one token of prefill. A token to say (`osl`)
is a place in one decode step; a held context token costs memory bandwidth at each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

from msgspec import Struct
from msgspec.structs import replace

from router.load import DEFAULT_OSL, Replica

_USUAL = 0.5
_MOST = 3.0


class Weights(Struct, frozen=True):
    """Defaults: what did best on agentic traces (`benchmarks/bench_routing.py`). A prefill moved
    elsewhere costs more than the turn's own wait: it slows all who decode there and drives out
    their prefixes. So load must be far apart before a session leaves its cache: prefill under way
    counts over half of its tokens (it is half done on average, and a burst had better wait for its
    common prefix), a held context a fiftieth.
    """

    prefill: float = 1.0
    under_way: float = 0.6
    decode: float = 2.0
    context: float = 0.02
    turn: float = 32.0
    waiting: float = 512.0
    disturb: float = 1.0

    def minding(self, latency: float | None) -> Weights:
        """The weights of a turn that minds slow tokens more or less than others (0.5, or None).

        What it minds is to decode beside many: up to four times as much, down to not at all. A
        batch turn goes where its prefix is, and leaves room to those who care.
        """
        if latency is None or latency == _USUAL:
            return self
        share = latency / _USUAL
        times = share if share < 1.0 else 1.0 + _MOST * (share - 1.0)
        return replace(
            self,
            decode=self.decode * times,
            context=self.context * times,
            turn=self.turn * times,
        )


def minding(latency: float | None) -> int:
    """How much such a turn minds what is prefilled beside it, in hundredths: each step that takes
    prompt tokens is that much longer for all who decode in it. Up to 0.5, as usual, not at all.
    """
    return max(0, round((latency or 0.0) * 200) - 100)


def cost(
    weights: Weights,
    prompt_tokens: int,
    overlap_tokens: int,
    replica: Replica,
    osl: int = DEFAULT_OSL,
) -> float:
    """What the turn would cost there. An overlap never saves the whole prompt: one token runs.

    A turn that says `osl` tokens has the others beside it for so many steps at most: a short one
    need not keep away from those that will go on for long.
    """
    uncached = max(1, prompt_tokens - overlap_tokens)
    return (
        weights.prefill * uncached
        + weights.disturb * uncached * replica.minding / 100
        + weights.under_way * (replica.prefill + replica.foreign_prefill)
        + weights.decode * min(replica.decode, osl * replica.turns)
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
