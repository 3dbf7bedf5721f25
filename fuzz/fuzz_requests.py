"""Mutated requests through the whole server in one process: no 5xx, no crash, no leak, every error
in its API's shape and cheap.

Run: `python fuzz/fuzz_requests.py [--count 10000] [--seed 1] [--api messages] [--quick]`. A finding
is printed with the request that brought it about. Seeds are the plain requests here and, where
TREADLE_FIXTURES and TREADLE_CORPUS lead to them, those of real harnesses.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil

from sessions.memory_store import MemoryStore
from tests.serving import fuzzing
from tests.serving.asks import PATHS
from tests.serving.server import Server, serving
from tests.serving.waits import until

QUICK = 300
MOST_CPU = 0.050  # seconds of CPU that a refusal may cost
MOST_GROWTH = 48 * 2**20  # bytes; allocators of other languages keep some of what they free


async def search(api: str, *, count: int, seed: int) -> bool:
    """One API; says what came of it, and whether all was well."""
    async with serving(store=MemoryStore(max_bytes=8 * 2**20)) as server:
        server.says({"text": "ok"})
        # Caches of tokens, templates and past turns fill to their bounds.
        await fuzzing.run(server, api, count=max(QUICK, count // 2), seed=seed - 1)
        before, began = rss(), time.monotonic()
        try:
            tally = await fuzzing.run(server, api, count=count, seed=seed)
        except fuzzing.FindingError as finding:
            print(f"{api}: FOUND\n{finding}")
            return False
        took, grown = time.monotonic() - began, rss() - before
        await nothing_left(server)
        cheap, small = tally.slowest < MOST_CPU, grown < MOST_GROWTH
        statuses = dict(sorted(tally.statuses.items()))
        print(
            f"{api}: {count} requests in {took:.0f} s, by status {statuses}"
            f"; slowest refusal {tally.slowest * 1000:.1f} ms of CPU{'' if cheap else ' TOO SLOW'}"
            f"; memory +{grown / 2**20:.0f} MiB{'' if small else ' TOO MUCH'}"
        )
        if not cheap:
            print(f"  {tally.slowest_body[:500]!r}")
        return cheap and small


async def nothing_left(server: Server) -> None:
    """No turn stays anywhere."""
    await until(lambda: not server.replica.inner.open_turns and not server.replica.lanes.parsing)
    stats = server.engine.stats()
    left = (len(server.conductor), stats.running, stats.waiting)
    if left != (0, 0, 0):
        raise fuzzing.FindingError(f"turns stayed in the conductor and the engine: {left}")


def rss() -> int:
    gc.collect()
    used: int = psutil.Process().memory_info().rss
    return used


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--api", choices=list(PATHS))
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} requests of each API")
    options = parser.parse_args()
    count = QUICK if options.quick else options.count
    asked = [options.api] if options.api else list(PATHS)
    well = [asyncio.run(search(api, count=count, seed=options.seed)) for api in asked]
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
