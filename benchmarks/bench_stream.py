"""What a token costs from the engine's step to the client's socket, with and without parser actors.

1, 16 and 64 streams at 50 tokens/s through the whole server (HAProxy, ingress, router, lanes, the
scripted engine): time to first token, gaps, and CPU per token by process. The CPU is that of every
process of the cluster, idle ones included.
Run: python benchmarks/bench_stream.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from served import Server, served
from sse_load import Arrivals, http, load, percentile

HERE = Path(__file__).resolve().parent
STEP = 0.020
MARK = b'"type":"content_block_delta"'
MAX_RATIO = 1.6
ON_TIME = 0.97  # share of the ideal rate: the last step of a stream may end late by one step
PARTS = ("ingress", "parser", "engine", "router", "haproxy", "other")


def request(app: str, port: int, tokens: int, number: int) -> bytes:
    body = {
        "model": "bench",
        "max_tokens": tokens,
        "stream": True,
        "messages": [{"role": "user", "content": f"Conversation {number}. Go on."}],
    }
    return http(f"/{app}/v1/messages", body, port)


def run(server: Server, app: str, streams: int, tokens: int) -> dict[str, float]:
    """One load; the figures of its row."""
    requests = [request(app, server.port, tokens, n) for n in range(streams)]
    before = server.cpu(app)
    began = time.perf_counter()
    limit = tokens * STEP * 3 + 60
    seen = asyncio.run(load(server.port, requests, MARK, stagger=0.005, limit=limit))
    took = time.perf_counter() - began
    after = server.cpu(app)
    bad = [s.status for s in seen if b"200" not in s.status or s.tokens < tokens - 4]
    if bad:
        raise RuntimeError(f"{len(bad)} of {streams} streams were wrong, first: {bad[0]!r}")
    return figures(seen, {k: after[k] - before[k] for k in after}, took, tokens)


def figures(
    seen: list[Arrivals], cpu: dict[str, float], took: float, tokens: int
) -> dict[str, float]:
    total = len(seen) * tokens
    gaps = [gap for stream in seen for gap in stream.gaps()]
    ideal = tokens * STEP
    late = max(s.times[-1][0] - s.times[0][0] for s in seen)
    row = {f"us_{part}": cpu[part] / total * 1e6 for part in PARTS}
    return row | {
        "us": sum(cpu.values()) / total * 1e6,
        "ttft50": percentile([s.first for s in seen], 0.5) * 1e3,
        "ttft90": percentile([s.first for s in seen], 0.9) * 1e3,
        "gap50": percentile(gaps, 0.5) * 1e3,
        "gap90": percentile(gaps, 0.9) * 1e3,
        "gap99": percentile(gaps, 0.99) * 1e3,
        "rate": ideal / late,
        "took": took,
    }


def show(app: str, streams: int, row: dict[str, float]) -> None:
    parts = " ".join(f"{row[f'us_{part}']:7.0f}" for part in PARTS)
    print(
        f"{app:7} {streams:4d} {row['us']:8.0f} {parts}   {row['ttft50']:5.0f} {row['ttft90']:5.0f}"
        f"   {row['gap50']:4.0f} {row['gap90']:4.0f} {row['gap99']:4.0f}   {row['rate']:.3f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    loads, tokens = ((16, 64), 150) if quick else ((1, 16, 64), 400)
    apps = ("inline", "actor")
    print(
        "CPU in us per token of all processes; TTFT and gaps in ms; rate: 1 = every token on time"
    )
    print(
        f"{'parser':7} {'c':>4} {'us/tok':>8} "
        + " ".join(f"{p:>7}" for p in PARTS)
        + "    ttft50    90    gap50  90   99    rate"
    )
    rows: dict[tuple[str, int], dict[str, float]] = {}
    with served(HERE / "clusters/stream.yaml", [f"/{app}/health" for app in apps]) as server:
        for app in apps:
            run(server, app, 4, 20)
        for streams in loads:
            for app in apps:
                rows[app, streams] = run(server, app, streams, tokens)
                show(app, streams, rows[app, streams])
    top = loads[-1]
    ratio = rows["actor", top]["us"] / rows["inline", top]["us"]
    on_time = min(rows[app, top]["rate"] for app in apps)
    holds = ratio <= MAX_RATIO and on_time >= ON_TIME
    print(
        f"{'OK' if holds else 'FAIL'}: {top} streams: actor/inline CPU per token {ratio:.2f} "
        f"(bar {MAX_RATIO}), slowest stream at {on_time:.3f} of its rate (bar {ON_TIME})"
    )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
