"""What a routing decision costs, and what the index weighs.

python -m benchmarks.bench_router [--quick] [--blocks N]

Bars: a prompt of 50k tokens hashed in 1.5 ms (blocks of 16); a decision over 64 hashes and 8
replicas in 100 µs. The process is alone with one thread; each figure is the median of many runs.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from router.blocks import chain, extend
from router.decision import Ask, Choice
from router.kv import KvStored
from router.load import Info
from router.router import Router, Settings

BLOCK = 16


def timed(work: Callable[[], object], runs: int) -> float:
    """Median microseconds of one call."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times) * 1e6


def hashing(runs: int) -> None:
    ids = [random.getrandbits(17) for _ in range(50_000)]
    known = chain(ids[:49_000], BLOCK)
    for label, work in {
        "chain   50k tokens, blocks of 16": lambda: chain(ids, 16),
        "chain   50k tokens, blocks of 64": lambda: chain(ids, 64),
        "extend  49k known, 1k new": lambda: extend(known, ids, BLOCK),
    }.items():
        print(f"{label:34} {timed(work, runs):8.0f} µs")


def fleet(replicas: int) -> Router:
    router = Router(Settings(max_blocks=100_000_000))
    for number in range(replicas):
        router.join(f"replica-{number}", Info(BLOCK, max_turns=10_000))
    return router


def store(router: Router, replica: str, ids: list[int]) -> None:
    hashes = chain(ids, BLOCK)
    router.kv(replica, [KvStored([block ^ 1 for block in hashes], None, ids, BLOCK)])


def deciding(blocks: int, runs: int) -> None:
    """Turns with a common half and an own half; each is begun, answered and released."""
    router = fleet(8)
    shared = [random.getrandbits(17) for _ in range(blocks // 2 * BLOCK)]
    for number in range(8):
        store(router, f"replica-{number}", shared)
    times, whole = [], []
    for number in range(runs):
        ids = shared + [random.getrandbits(17) for _ in range(blocks // 2 * BLOCK)]
        ask = Ask(turn=f"t{number}", hashes=chain(ids, BLOCK), prompt_tokens=len(ids))
        start = time.perf_counter()
        made = router.choose(ask, number * 1e-3)
        times.append(time.perf_counter() - start)
        if not isinstance(made, Choice):
            raise TypeError(made)
        router.begun(made.reservation, number * 1e-3)
        router.first_token(made.reservation, number * 1e-3)
        if number >= 64:
            router.release(f"t{number - 64}/{number - 63}", number * 1e-3)
        whole.append(time.perf_counter() - start)
    cuts = quantiles(times, n=100)
    print(
        f"choose  {blocks:5} hashes x 8 replicas {cuts[49] * 1e6:8.0f} µs p50 "
        f"{cuts[98] * 1e6:6.0f} µs p99; with begin, first token and release "
        f"{median(whole) * 1e6:.0f} µs"
    )


def weighing(blocks: int) -> None:
    """Blocks held by one replica each, in prompts of 512 blocks."""
    router = fleet(8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    for number in range(blocks // 512):
        ids = [random.getrandbits(17) for _ in range(512 * BLOCK)]
        store(router, f"replica-{number % 8}", ids)
    seconds = time.perf_counter() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    unit = 1 if sys.platform == "darwin" else 1024
    each = grown * unit / len(router.index)
    print(
        f"index   {len(router.index):,} blocks: {each:.0f} bytes a block, made in {seconds:.1f} s"
    )
    start = time.perf_counter()
    data = router.snapshot(0.0)
    written = time.perf_counter()
    Router(router.settings).restore(data, 0.0)
    read = time.perf_counter() - written
    print(
        f"snapshot {len(data) / 2**20:.0f} MiB, written in {(written - start) * 1e3:.0f} ms, "
        f"restored in {read * 1e3:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds in all")
    parser.add_argument("--blocks", type=int, help="how many blocks the index is weighed with")
    args = parser.parse_args()
    quick = args.quick
    random.seed(1)
    weighing(args.blocks or (200_000 if quick else 1_000_000))
    hashing(30 if quick else 200)
    deciding(64, 500 if quick else 5000)
    deciding(3000, 50 if quick else 500)


if __name__ == "__main__":
    main()
