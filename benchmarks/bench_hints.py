"""What each hint does, beside the same run without it, on the simulator. Seeds are fixed.

python -m benchmarks.bench_hints [--quick] [HINT ...]

priority             a saturated fleet: p50 TTFT of one turn in five, urgent or like all others
osl                  answers of 32 or 8,000 tokens, told or not: the gaps of the long ones, where
                     they are many on one replica, and who waits
latency_sensitivity  one turn in five minds slow tokens, said or not: its gap between tokens, among
                     others that bring long prompts
speculative_prefill  reasoning is dropped from history: next turn's TTFT, and all prefill work
pin                  60 s of silence under pressure: hit rate after it, kept warm or not
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msgspec.structs import replace

from benchmarks.sim import figures, traces
from benchmarks.sim.engine import Shape
from benchmarks.sim.fleet import Fleet, Outcome
from benchmarks.sim.sessions import Habits, Session, SimTurn, generate
from router.decision import Ask
from router.router import Settings

REPLICAS = 8
QUEUE = Settings(queue_limit=100_000, queue_patience=1e9)
Row = dict[str, float]


def spread(sessions: list[Session], shape: Shape, load: float, replicas: int) -> list[Session]:
    return traces.spread(sessions, figures.work(sessions, shape) / replicas / load, 7)


def priority(quick: bool) -> tuple[dict[str, Row], str, bool]:
    shape = Shape(max_turns=6)
    sessions = generate(
        60 if quick else 120, 11, Habits(turns=12, agents=0.0, out=400, tool_gap=0.2, user_gap=0.5)
    )
    urgent = {session.name for session in sessions[::5]}
    mixed = spread(sessions, shape, 20.0, 4)
    rows, outcomes = {}, {}
    for label, value in (("urgent", 50), ("control", 0)):
        for session in sessions:
            for turn in session.turns:
                turn.priority = value if session.name in urgent else 0
        found = outcomes[label] = Fleet(4, shape=shape, settings=QUEUE).run(mixed)
        theirs = [turn for turn in found.turns if turn.session in urgent]
        others = [turn for turn in found.turns if turn.session not in urgent]
        rows[label] = {
            "urgent p50 s": figures.ttft(theirs, 0.5),
            "others p50 s": figures.ttft(others, 0.5),
            "others p99 s": figures.ttft(others, 0.99),
        }
    gain = rows["control"]["urgent p50 s"] / rows["urgent"]["urgent p50 s"]
    return rows, f"urgent turns wait {gain:.1f} times less than the same turns without it", gain > 2


def osl(quick: bool) -> tuple[dict[str, Row], str, bool]:
    shape, chance = Shape(max_turns=48), Random(5)
    habits = Habits(turns=2, agents=0.0, head=1000, project=500, own=500, heads=1, projects=1)
    sessions = generate(400 if quick else 2000, 12, habits)
    for session in sessions:
        for turn in session.turns:
            turn.out = 8000 if chance.random() < 0.05 else 32
    mixed = spread(sessions, shape, 0.7, REPLICAS)

    def told(ask: Ask, turn: SimTurn) -> Ask:
        return replace(ask, osl=turn.out)

    rows = {}
    for label, tune in (("told", told), ("control", None)):
        found = Fleet(REPLICAS, shape=shape, settings=QUEUE, tune=tune).run(mixed)
        gaps = [figures.gap(turn) * 1e3 for turn in found.turns if turn.out > 100]
        rows[label] = {
            "imbalance": figures.imbalance(found),
            "gap p50 ms": figures.at(gaps, 0.5),
            "gap p99 ms": figures.at(gaps, 0.99),
            "ttft p99 s": figures.ttft(found.turns, 0.99),
        }
    before, after = (rows[label]["gap p99 ms"] for label in ("control", "told"))
    waits = rows["told"]["ttft p99 s"] / rows["control"]["ttft p99 s"]
    said = f"{after:.2f} ms between tokens at p99, not {before:.2f}; TTFT p99 {waits:.2f} times"
    return rows, said, after <= 0.97 * before and waits <= 1.1


def latency_sensitivity(quick: bool) -> tuple[dict[str, Row], str, bool]:
    shape = Shape()
    habits = Habits(turns=6, agents=0.0, out=500, own=8000, result=3000)
    sessions = generate(60 if quick else 200, 13, habits)
    minding = {session.name for session in sessions[::5]}
    mixed = spread(sessions, shape, 0.8, REPLICAS)

    def told(ask: Ask, _: SimTurn) -> Ask:
        return replace(ask, latency=1.0 if ask.session in minding else 0.0)

    rows = {}
    for label, tune in (("told", told), ("control", None)):
        found = Fleet(REPLICAS, shape=shape, settings=QUEUE, tune=tune).run(mixed)
        theirs = [t for t in found.turns if t.session in minding and t.out > 20]
        others = [t for t in found.turns if t.session not in minding and t.out > 20]
        rows[label] = {
            "their gap p50 ms": figures.at((figures.gap(t) * 1e3 for t in theirs), 0.5),
            "their gap p90 ms": figures.at((figures.gap(t) * 1e3 for t in theirs), 0.9),
            "others' gap p90 ms": figures.at((figures.gap(t) * 1e3 for t in others), 0.9),
            "hit": figures.hit(found.turns),
            "ttft p99 s": figures.ttft(found.turns, 0.99),
        }
    before, after = (rows[label]["their gap p90 ms"] for label in ("control", "told"))
    said = f"{after:.2f} ms between tokens at p90, not {before:.2f} (bar: a tenth less)"
    return rows, said, after <= 0.9 * before


def speculative_prefill(quick: bool) -> tuple[dict[str, Row], str, bool]:
    shape = Shape()
    habits = Habits(turns=10, agents=0.0, out=4000, kept_out=0.6, result=400, user_share=0.0)
    sessions = generate(30 if quick else 100, 14, habits)
    mixed = spread(sessions, shape, 0.5, REPLICAS)
    rows = {}
    for label, warm in (("warmed", True), ("control", False)):
        found = Fleet(REPLICAS, shape=shape, settings=QUEUE, warm=warm).run(mixed)
        later = [turn for turn in found.turns if turn.cached]
        rows[label] = {
            "next ttft p50 s": figures.ttft(later, 0.5),
            "next ttft p90 s": figures.ttft(later, 0.9),
            "prefilled M": found.prefilled / 1e6,
            "warmed": found.warmed,
        }
    before, after = (rows[label]["next ttft p50 s"] for label in ("control", "warmed"))
    more = rows["warmed"]["prefilled M"] / rows["control"]["prefilled M"] - 1
    said = f"TTFT of the next turn {after:.3f} s, not {before:.3f}; prefill work {more:+.1%}"
    return rows, said, after < before and more <= 0.05


def pin(quick: bool) -> tuple[dict[str, Row], str, bool]:
    shape, replicas = Shape(blocks=320), 4 if quick else 10  # on each as many sessions
    sessions = generate(15 * replicas, 15, Habits(turns=12, agents=0.0, tool_gap=1.0))
    chance = Random(3)
    pinned = {session.name for session in sessions[::8]}
    for session in sessions:
        session.pinned = session.name in pinned
        if session.pinned:
            for turn in session.turns[1:]:
                turn.gap = 60.0 + chance.random()
    mixed = spread(sessions, shape, 2.0, replicas)

    def told(ask: Ask, _: SimTurn) -> Ask:
        return replace(ask, pinned=ask.session in pinned)

    rows = {}
    for label, refresh, tune in (("pinned", 10.0, told), ("control", 0.0, None)):
        fleet = Fleet(replicas, shape=shape, settings=QUEUE, tune=tune, refresh=refresh)
        found: Outcome = fleet.run(mixed)
        theirs = [turn for turn in found.turns if turn.session in pinned]
        seen: set[str] = set()
        later = [t for t in theirs if t.session in seen or seen.add(t.session)]
        others = [turn for turn in found.turns if turn.session not in pinned]
        rows[label] = {
            "hit after 60 s": figures.hit(later),
            "ttft after 60 s, p50": figures.ttft(later, 0.5),
            "others' hit": figures.hit(others),
        }
    before, after = (rows[label]["hit after 60 s"] for label in ("control", "pinned"))
    return rows, f"{after:.1%} of the prompt is there after 60 s, not {before:.1%}", after > before


HINTS: dict[str, Callable[[bool], tuple[dict[str, Row], str, bool]]] = {
    "priority": priority,
    "osl": osl,
    "latency_sensitivity": latency_sensitivity,
    "speculative_prefill": speculative_prefill,
    "pin": pin,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hints", nargs="*", help="without them, all")
    parser.add_argument("--quick", action="store_true", help="a third of the sessions")
    args = parser.parse_args()
    good = True
    for name in args.hints or HINTS:
        rows, said, holds = HINTS[name](args.quick)
        print(f"\n## {name}\n\n{figures.table(rows)}\n", flush=True)
        print(f"{'holds' if holds else 'FAILS'}: {said}", flush=True)
        good = good and holds
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
