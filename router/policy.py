"""Policies: how one of the replicas that could take a turn is picked. A policy is a table entry.

`kv`            least cost (overlap, prefill, decode load), see `router/cost.py`
`least_loaded`  fewest active turns, then least prefill under way
`round_robin`   the one chosen longest ago
`sticky`        rendezvous hashing on the session, else on the head of the prompt
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from router.cost import Weights, cost, draw
from router.decision import Ask, Why
from router.load import DEFAULT_OSL, Replica
from router.rendezvous import rendezvous


class Tuning(Struct, frozen=True, kw_only=True):
    """What `kv` may be told. `temperature` 0 is the least cost; above it spreads by chance.

    A replica that would come to hold over `spread` times the mean of active turns, and more than
    `spread_slack` above it, gets no credit for an overlap that costs others little: `spread_tokens`
    of prefill for each turn it has too many. So it sheds turns of a prefix that many have, which
    gets another home, and keeps sessions whose long prefix is theirs alone: to compute one of
    those anew does more harm than the load.
    Costs closer than a tenth of the prompt, at least one block and at most `tie_tokens`, are even:
    a tiny shared prefix must not pin an idle fleet to one replica.
    """

    weights: Weights = field(default_factory=Weights)
    temperature: float = 0.0
    spread: float = 1.3
    spread_slack: float = 4.0
    spread_tokens: int = 12_288
    tie_tokens: int = 256


class View(Struct, frozen=True):
    """What a policy sees: who could take the turn (never empty), overlaps in blocks, a chance."""

    ask: Ask
    replicas: Sequence[Replica]
    overlap: Mapping[str, int]
    block_size: int
    tuning: Tuning
    chance: float


Pick = tuple[Replica, Why]
Policy = Callable[[View], Pick]


def kv(view: View) -> Pick:
    tuning, prompt = view.tuning, view.ask.prompt_tokens
    replicas, overlap = view.replicas, view.overlap
    osl = DEFAULT_OSL if view.ask.osl is None else view.ask.osl
    mean = (sum(r.active for r in replicas) + 1) / len(replicas)
    limit = max(tuning.spread * mean, mean + tuning.spread_slack)
    shed = False
    others = [overlap.get(r.name, 0) for r in replicas if r.active + 1 <= limit]
    elsewhere = max(others, default=0) * view.block_size
    weights = tuning.weights.minding(view.ask.latency)
    costs = []
    for replica in replicas:
        tokens = overlap.get(replica.name, 0) * view.block_size
        over = replica.active + 1 - limit
        anew = tokens - elsewhere
        if tokens and not view.ask.pinned and over > 0 and anew <= over * tuning.spread_tokens:
            tokens, shed = 0, True
        costs.append(cost(weights, prompt, tokens, replica, osl))
    if tuning.temperature > 0:
        best = replicas[draw(costs, tuning.temperature, view.chance)]
    else:
        even = min(costs) + max(view.block_size, min(prompt // 10, tuning.tie_tokens))
        best = min(
            (r for r, value in zip(replicas, costs, strict=True) if value <= even),
            key=lambda r: (r.active, r.last_chosen),
        )
    if overlap.get(best.name):
        return best, "overlap"
    return best, "spread" if shed else "load"


def least_loaded(view: View) -> Pick:
    return min(
        view.replicas,
        key=lambda r: (r.active, r.prefill + r.foreign_prefill, r.last_chosen),
    ), "load"


def round_robin(view: View) -> Pick:
    return min(view.replicas, key=lambda r: r.last_chosen), "round_robin"


def sticky(view: View) -> Pick:
    ask = view.ask
    key = ask.session or (ask.hashes[0] if ask.hashes else ask.turn)
    name = rendezvous(key, (r.name for r in view.replicas))
    return next(r for r in view.replicas if r.name == name), "sticky"


POLICIES: dict[str, Policy] = {
    "kv": kv,
    "round_robin": round_robin,
    "least_loaded": least_loaded,
    "sticky": sticky,
}
