"""Policies beside each other on agentic load: hit rate, TTFT, balance; and what a decision costs.

python -m benchmarks.bench_routing [--quick] [--out FOLDER] [PART ...]

Parts: `trace` (real coding-agent sessions; needs TREADLE_TRACES), `shared` (generated sessions with
layers that sessions share; the same), `agents` (our generator: sub-agents, tool gaps, compaction),
`hot` (one prefix for all), `wide` (2,000 replicas), `engines` (eight scripted engines in real
time), `decisions` (1,000 a second). Without parts, all. Load is offered work at perfect caching
over the fleet's time (`benchmarks.sim.figures.work`); seeds are fixed.

Bars, on `trace` and `agents` at a load of 0.7 and on `shared`: kv's p50 TTFT at most a third of
round robin's, its p99 no worse than any other's; on `hot`, no replica over 1.3 times the mean; a
decision within 1 ms at p50.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.sim import engines, figures, traces
from benchmarks.sim.engine import Shape
from benchmarks.sim.fleet import Fleet, Outcome
from benchmarks.sim.ray_prefix import RayPrefix
from benchmarks.sim.sessions import Habits, Session, generate
from router.blocks import chain
from router.decision import Ask, Choice
from router.kv import KvHeld
from router.load import Info
from router.policy import POLICIES, Policy
from router.router import Router, Settings

LOAD, SEED, REPLICAS = 0.7, 7, 8
SHAPE = Shape(blocks=6144)
OTHERS: dict[str, Callable[[], Policy]] = {
    "ray prefix": RayPrefix,
    "ray prefix, 10": lambda: RayPrefix(imbalanced=10),
}


def compared(
    sessions: list[Session], replicas: int, *, load: float = LOAD, names: tuple[str, ...] = ()
) -> dict[str, Outcome]:
    """The same sessions at the same times under each policy."""
    seconds = figures.work(sessions, SHAPE) / replicas / load
    mixed = traces.spread(sessions, seconds, SEED)
    found: dict[str, Outcome] = {}
    for name in names or (*POLICIES, *OTHERS):
        ours = name in POLICIES
        settings = Settings(policy=name if ours else "kv", queue_limit=4096, queue_patience=1e9)
        policy = None if ours else OTHERS[name]()
        found[name] = Fleet(replicas, shape=SHAPE, settings=settings, policy=policy).run(mixed)
    return found


def show(title: str, outcomes: dict[str, Outcome], out: Path) -> None:
    print(f"\n## {title}\n")
    print(figures.table({name: figures.row(one) for name, one in outcomes.items()}), flush=True)
    path = figures.plot(title, outcomes, out)
    print(f"\n(plot: {path})" if path else "\n(no plot: the group `bench` has matplotlib)")


def verdict(what: str, holds: bool) -> bool:
    print(f"{'holds' if holds else 'FAILS'}: {what}")
    return holds


def ahead(title: str, found: dict[str, Outcome], out: Path) -> bool:
    """Whether kv is ahead of the others by the bars."""
    show(title, found, out)
    p50 = {name: figures.ttft(one.turns, 0.5) for name, one in found.items()}
    p99 = {name: figures.ttft(one.turns, 0.99) for name, one in found.items()}
    times = p50["round_robin"] / p50["kv"]
    return all(
        [
            verdict(f"kv's p50 TTFT is {times:.0f} times better than round robin's", times >= 3),
            verdict(f"kv's p99 of {p99['kv']:.2f} s is the least", p99["kv"] <= min(p99.values())),
        ]
    )


def trace(quick: bool, out: Path) -> bool:
    where = traces.folder()
    if where is None:
        print("trace: skipped, TREADLE_TRACES names no folder")
        return True
    return ahead("trace", compared(traces.weka(where, 1 if quick else 5), REPLICAS), out)


def shared(quick: bool, out: Path) -> bool:
    where = traces.folder()
    if where is None:
        print("shared: skipped, TREADLE_TRACES names no folder")
        return True
    found = compared(traces.aiperf(where, 60 if quick else 300), REPLICAS, load=0.6)
    return ahead("shared", found, out)


def agents(quick: bool, out: Path) -> bool:
    return ahead("agents", compared(generate(20 if quick else 120, 1), REPLICAS), out)


def hot(quick: bool, out: Path) -> bool:
    """Every turn has one prefix of 16k tokens and little of its own."""
    habits = Habits(
        heads=1, head=16_000, projects=1, project=400, turns=2, own=300, agents=0.0, result=200
    )
    found = compared(generate(300 if quick else 3000, 3, habits), REPLICAS, names=("kv", "sticky"))
    show("hot", found, out)
    most = figures.imbalance(found["kv"])
    return verdict(f"a hot prefix holds {most:.2f} times the mean load at most", most <= 1.3)


def wide(quick: bool, out: Path) -> bool:
    replicas = 200 if quick else 2000
    names = ("kv", "round_robin", "sticky")
    show("wide", compared(generate(replicas // 2, 5), replicas, names=names), out)
    return True


def scripted(quick: bool, _: Path) -> bool:
    """Eight scripted engines in real time, a tenth of the simulator's sizes."""
    print("\n## eight scripted engines, real time\n")
    rows = {}
    for name in ("kv", "round_robin", "least_loaded", "sticky"):
        rows[name] = asyncio.run(engines.run(name, sessions=24 if quick else 48))
    print(figures.table(rows), flush=True)
    return True


def decisions(quick: bool, _: Path) -> bool:
    """1,000 decisions a second over prompts of 1,024 blocks of 16 tokens and eight replicas."""
    router = Router(Settings())
    for number in range(REPLICAS):
        router.join(f"r{number}", Info(16, 10_000))
    prompts = [chain([n, *range(1024 * 16)], 16) for n in range(64)]
    for number, hashes in enumerate(prompts):
        router.kv(f"r{number % REPLICAS}", [KvHeld(hashes, hashes)])
    times = []
    began = time.perf_counter()
    for number in range(500 if quick else 5000):
        due = began + number / 1000
        time.sleep(max(0.0, due - time.perf_counter()))
        ask = Ask(turn=f"t{number}", hashes=prompts[number % 64], prompt_tokens=1024 * 16 + 1)
        start = time.perf_counter()
        made = router.choose(ask, start)
        times.append(time.perf_counter() - start)
        if isinstance(made, Choice):
            router.first_token(made.reservation, start, 1024 * 16)
            router.release(made.reservation, start)
    p50, p99 = figures.at(times, 0.5) * 1e3, figures.at(times, 0.99) * 1e3
    print(f"\n## decisions\n\np50 {p50:.3f} ms, p99 {p99:.3f} ms; weight: bench_router --blocks")
    return verdict("a decision takes at most 1 ms at p50", p50 <= 1)


PARTS = {
    "trace": trace,
    "shared": shared,
    "agents": agents,
    "hot": hot,
    "wide": wide,
    "engines": scripted,
    "decisions": decisions,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="without them, all")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sessions")
    parser.add_argument("--out", type=Path, default=Path(".run/routing"), help="where plots go")
    args = parser.parse_args()
    good = [PARTS[part](args.quick, args.out) for part in args.parts or PARTS]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
