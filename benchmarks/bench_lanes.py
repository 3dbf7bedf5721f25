"""One hop between two actors, four ways: what a token costs in both processes together.

  in-process   no hop at all: the floor
  per request  a stream of object refs for each turn, an item per token
  lane         one stream of object refs, an item per engine step for all turns
  push         one actor call per engine step, acknowledged every 16th

An engine actor makes a token for each of N turns every 20 ms; a consumer decodes them.
Run: python benchmarks/bench_lanes.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ray
from lane_ends import Consumer, Engine

HERE = Path(__file__).resolve().parent
MIN_GAIN = 3.0  # a lane against a stream per request, at 64 turns
MODES = ("in-process", "per request", "lane", "push")


async def measure(mode: str, turns: int, steps: int) -> float:
    """CPU microseconds per token of both processes."""
    options = {"num_cpus": 0, "max_concurrency": 1000}
    engine: Any = ray.remote(Engine).options(**options).remote()
    consumer: Any = ray.remote(Consumer).options(**options).remote()
    before = await engine.used.remote() + (await consumer.used.remote())[0]
    match mode:
        case "in-process":
            tokens = await engine.alone.remote(turns, steps)
        case "per request":
            await consumer.read_each.remote(engine, turns, steps)
        case "lane":
            await consumer.read.remote(engine, "lane", turns, steps)
        case _:
            await engine.push.remote(consumer, turns, steps)
    used, seen = await consumer.used.remote()
    after = await engine.used.remote() + used
    ray.kill(engine)
    ray.kill(consumer)
    tokens = tokens if mode == "in-process" else seen
    if tokens != turns * steps:
        raise RuntimeError(f"{mode}: {tokens} of {turns * steps} tokens came")
    return float(after - before) / tokens * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    steps, rounds = (50, 2) if quick else (250, 3)
    path = {"PYTHONPATH": f"{HERE}:{HERE.parent}"}
    ray.init(
        num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": path}
    )
    print(f"CPU us per token, both processes, median of {rounds}")
    print(f"{'turns':>6} " + " ".join(f"{mode:>12}" for mode in MODES))
    gain = 0.0
    for turns in (1, 16, 64):
        seen: dict[str, list[float]] = {mode: [] for mode in MODES}
        for _ in range(rounds):
            for mode in MODES:
                seen[mode].append(asyncio.run(measure(mode, turns, steps)))
        row = {mode: statistics.median(values) for mode, values in seen.items()}
        gain = row["per request"] / row["lane"]
        print(f"{turns:6d} " + " ".join(f"{row[mode]:12.0f}" for mode in MODES), flush=True)
    ray.shutdown()
    holds = gain >= MIN_GAIN
    print(
        f"{'OK' if holds else 'FAIL'}: at 64 turns a lane costs {gain:.1f}x less than a stream per "
        f"request (bar {MIN_GAIN})"
    )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
