"""What a turn costs in the session store, with a real Valkey on a unix socket.

Run: `python benchmarks/bench_sessions.py [--quick]`. One row an operation: wall time alone, and CPU
of this process per operation when many come at once; the bar is 1 ms of CPU for each.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sessions.ledger import Ledger
from sessions.records import TURNS, SessionSeen
from sessions.redis_store import RedisStore
from sessions.valkey_server import EmbeddedValkey

TTL = 60.0
BAR_US = 1000.0


async def measure(name: str, work: Callable[[int], Awaitable[object]], runs: int) -> float:
    """Does it alone, then at once; the µs of CPU of one among many."""
    start = time.perf_counter()
    for number in range(runs):
        await work(number)
    alone = (time.perf_counter() - start) / runs
    start = time.process_time()
    await asyncio.gather(*(work(number) for number in range(runs)))
    cpu = (time.process_time() - start) / runs
    print(f"{name:42} {alone * 1e6:6.0f} µs alone {cpu * 1e6:6.0f} µs CPU among {runs}")
    return cpu * 1e6


async def main(runs: int) -> int:
    random.seed(1)
    ids = [random.getrandbits(17) for _ in range(500)]
    server = EmbeddedValkey()
    store = RedisStore(await asyncio.to_thread(server.start))
    ledger = Ledger(store, ttl=TTL)
    keys = [f"k{number}" for number in range(8)]
    await store.ping()
    try:
        seen = [SessionSeen("o", f"s{number}", 1.0, "codex", "m") for number in range(runs)]
        rows: dict[str, Callable[[int], Awaitable[object]]] = {
            "touch a session": lambda n: store.touch_session(seen[n], TTL),
            "put a reply of 500 tokens in the ledger": lambda n: store.put(
                ledger.write("o", f"k{n}", ids)
            ),
            "find 8 replies in the ledger": lambda _: ledger.find("o", keys),
            "append to the turns of a session": lambda n: store.append(
                TURNS, "o", f"s{n}", ["turn"], ttl=TTL, keep=256
            ),
        }
        worst = max([await measure(name, work, runs) for name, work in rows.items()])
    finally:
        await store.close()
        server.stop()
    print(f"worst {worst:.0f} µs | bar: {BAR_US:.0f} µs | {'ok' if worst <= BAR_US else 'MISSED'}")
    return 0 if worst <= BAR_US else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second or two")
    sys.exit(asyncio.run(main(200 if parser.parse_args().quick else 2000)))
