"""Buffer-and-hand-off beside trajectories: what reaches the model, what is read, how long it takes.

    python benchmarks/bench_toolruns.py [--scale 0.05 | --quick] [--json FILE]

Both sides read the same sources on this machine, in turns; a figure is the median of its runs. A
buffering tool reads everything and sends it as JSON rows; a trajectory stops at its predicate or
budget. `cold` is the first run against a database, whose instance is yet to start. Ends with an
error when a bar is missed (`BARS`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from toolruns.budget import Budget
from toolruns.contract import Contract, Mode
from toolruns.machine import ToolRun
from toolruns.predicate.parse import parse
from toolruns.rows.handles import new_handle
from toolruns.runner import LiveRun
from toolruns.snapshot import text_of
from toolruns.sources.duckdb_query import DuckdbQuery
from toolruns.sources.generator import GeneratorSource
from toolruns.sources.http_pages import HttpApi, HttpPages, Paging
from toolruns.sources.source import InThread, Source
from toolruns.synopsis.stream import Synopsis

BUDGET = Budget(
    rows=10**7, bytes=10**10, tokens=8000, seconds=60.0, idle_seconds=0.5, yield_after=100.0
)
BARS = {"bytes": 5000, "rows": 1000, "seconds": 5, "cpu": 5}
"""How many times less a trajectory takes than buffering, at least, for the scan and the join."""
RATE = 3e6
"""Rows that a core summarises in a second of its time, at least."""
RUNS = 5
OVER_MS = 250
"""How far over its budget the p99 of the slow tail may be, and every upstream's closing."""
QUICK = 0.01
"""The least scale at which there are 50,000 rows to stop in."""
PATIENT = msgspec.structs.replace(BUDGET, idle_seconds=20.0)
"""For sources that are only as slow as the machine."""
GOAL = "count >= 30 AND distinct(l_suppkey) >= 10"
LINE = "l_orderkey, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount"
JOINED = (
    "o_orderkey, o_custkey, c_name, c_mktsegment, l_partkey, l_suppkey, l_quantity, "
    "l_extendedprice, l_shipmode, l_comment"
)
JOIN = "lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey"
QUERIES = {  # our own constants make these statements
    "scan 50k x 10": f"SELECT {LINE}, l_shipdate, l_shipmode, l_comment FROM lineitem LIMIT 50000",  # noqa: S608
    "3-way join 50k": f"SELECT {JOINED} FROM {JOIN} LIMIT 50000",  # noqa: S608
    "full lineitem": "SELECT * FROM lineitem",
    "ORDER BY (blocking) 50k": (
        "SELECT l_orderkey, l_suppkey, l_extendedprice FROM lineitem "
        "ORDER BY l_extendedprice DESC LIMIT 50000"
    ),
}


class Counted:
    """A source that counts what is read from it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.rows = 0

    async def open(self) -> None:
        await self.source.open()

    async def read(self, rows: int) -> Any:
        answer = await self.source.read(rows)
        self.rows += answer.batch.num_rows if hasattr(answer, "batch") else 0
        return answer

    async def close(self) -> None:
        await self.source.close()


async def trajectory(
    source: Source, until: str | None, *, mode: Mode = "chunked", budget: Budget = BUDGET
) -> dict[str, Any]:
    """Bytes to the model, rows read, seconds to the result, and why it ended."""
    counted = Counted(source)
    run = ToolRun(new_handle(), Contract(mode), budget, until=parse(until) if until else None)
    live = LiveRun(run, counted)
    began, worked = time.perf_counter(), time.process_time()
    live.start()
    outcome = await live.outcome()
    text = text_of(outcome.snapshot, 900)
    seconds = time.perf_counter() - began
    await live.ended()
    return {
        "bytes": len(text.encode()),
        "rows": counted.rows,
        "seconds": seconds,
        "cpu": time.process_time() - worked,
        "reason": str(outcome.ending),
        "close_ms": round((live.closed_in or 0) * 1000, 1),
    }


def buffered(path: Path, sql: str) -> dict[str, Any]:
    """All rows, as the JSON a plain tool sends."""
    began, worked = time.perf_counter(), time.process_time()
    with duckdb.connect(str(path), read_only=True) as con:
        found = con.execute(sql)
        names = [column[0] for column in found.description]
        rows, size = 0, 0
        while batch := found.fetchmany(10_000):
            rows += len(batch)
            size += len(msgspec.json.encode([dict(zip(names, row, strict=True)) for row in batch]))
    cpu = time.process_time() - worked
    return {"bytes": size, "rows": rows, "seconds": time.perf_counter() - began, "cpu": cpu}


def database(folder: Path, scale: float) -> Path:
    """A DuckDB file with the TPC-H tables that the queries need."""
    tables = ("lineitem", "orders", "customer")
    subprocess.run(  # noqa: S603 (our own arguments)
        [
            str(Path(sys.executable).with_name("tpchgen-cli")),
            "parquet",
            "-s",
            str(scale),
            f"--output-dir={folder}",
            f"--tables={','.join(tables)}",
        ],
        check=True,
        capture_output=True,
    )
    path = folder / "tpch.duckdb"
    with duckdb.connect(str(path)) as con:
        for table in tables:
            con.execute(f"CREATE TABLE {table} AS SELECT * FROM '{folder}/{table}.parquet'")  # noqa: S608 (our names)
    return path


async def api(pages: int, delay: float) -> tuple[Any, str, list[int]]:
    """An HTTP API of `pages` pages of 100 rows; gives server, URL and the pages asked for."""
    asked: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ")[1]
                page = int(path.partition("page=")[2] or 1)
                asked.append(page)
                await asyncio.sleep(delay)
                rows = [{"id": page * 100 + n, "user_id": n % 17} for n in range(100)]
                body = json.dumps(rows if page <= pages else []).encode()
                writer.write(b"HTTP/1.1 200 x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/items", asked


async def paged() -> dict[str, Any]:
    server, url, asked = await api(100, 0.005)
    declared = HttpApi(url=url, private=True, paging=Paging(style="page", param="page"))
    began = time.perf_counter()
    source, size = HttpPages(declared, {}), 0
    await source.open()
    while hasattr(answer := await source.read(1), "batch") and not answer.last:
        size += answer.size
    await source.close()
    plain = {"bytes": size, "rows": len(asked), "seconds": time.perf_counter() - began}
    asked.clear()
    stopped = await trajectory(HttpPages(declared, {}), "count >= 250", mode="paginated")
    stopped["rows"] = len(asked)
    server.close()
    return {"plain": plain, "stopped": stopped}


def trickle(seed: int, stall_at: int | None = None) -> Callable[[], Any]:
    """Rows about a millisecond apart, one in a hundred 200 ms late; stalls for good at a row."""
    rng = np.random.default_rng(seed)

    async def rows() -> Any:
        n = 0
        while True:
            await asyncio.sleep(3600 if n == stall_at else 0.2 if rng.random() < 0.01 else 0.001)
            yield {"n": n}
            n += 1

    return rows


async def slow_tail(runs: int, budget_seconds: float) -> dict[str, Any]:
    fields = {name: getattr(BUDGET, name) for name in BUDGET.__struct_fields__}
    budget = Budget(**{**fields, "seconds": budget_seconds, "idle_seconds": 10.0})
    results = await asyncio.gather(
        *(
            trajectory(
                GeneratorSource(trickle(seed)), "count >= 100000", mode="unbounded", budget=budget
            )
            for seed in range(runs)
        )
    )
    over = sorted(result["seconds"] - budget_seconds for result in results)
    return {
        "runs": runs,
        "p50_over_ms": over[runs // 2] * 1000,
        "p99_over_ms": over[int(runs * 0.99)] * 1000,
    }


def synopsis_rate(rows: int = 1_000_000) -> float:
    """Rows a second of one core's time, six columns, all summarised: of each batch the median run,
    so that what else the machine does in a moment is left out.
    """
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "id": np.arange(rows),
            "user_id": rng.zipf(1.3, rows) % 100_000,
            "status": pa.array(rng.choice(["ok", "error", "late"], rows)),
            "amount": rng.normal(100, 20, rows),
            "ts": pa.array(np.arange(rows) * 1000, pa.timestamp("us")),
            "qty": rng.integers(0, 50, rows),
        }
    )
    batches = table.combine_chunks().to_batches(8192)
    runs = []
    for _ in range(RUNS):
        synopsis = Synopsis(["user_id", "status"])
        moments = [time.process_time()]
        for batch in batches:
            for piece in synopsis.pieces(batch, synopsis.rows):
                synopsis.add(piece)
            synopsis.end_chunk()
            moments.append(time.process_time())
        runs.append(np.diff(moments))
    return rows / float(np.median(runs, axis=0).sum())


def middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run with the median seconds, and the median of processor time."""
    found = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
    return {**found, "cpu": statistics.median(run["cpu"] for run in runs)}


def show(name: str, plain: dict[str, Any], stopped: dict[str, Any]) -> None:
    ratios = " ".join(
        f"{what} x{plain[what] / max(1e-9, stopped[what]):,.0f}"
        for what in ("bytes", "rows", "seconds", "cpu")
        if what in plain and what in stopped
    )
    left = f"{plain['bytes']:>12,} B {plain['rows']:>9,} rows {plain['seconds']:7.2f} s"
    right = (
        f"{stopped['bytes']:>5,} B {stopped['rows']:>5,} rows {stopped['seconds'] * 1000:7.0f} ms"
    )
    print(f"{name:24s} {left} | {right} | {ratios}")


async def measure(scale: float) -> dict[str, Any]:
    results: dict[str, Any] = {"scale": scale}
    with tempfile.TemporaryDirectory() as folder:
        path = database(Path(folder), scale)
        for name, sql in QUERIES.items():
            stopped, plain = [], []
            for _ in range(RUNS):
                source = InThread(DuckdbQuery(path, sql))
                stopped.append(await trajectory(source, GOAL, budget=PATIENT))
                plain.append(buffered(path, sql))
            if {run["reason"] for run in stopped} != {"predicate_satisfied"}:
                sys.exit(f"{name}: {[run['reason'] for run in stopped]}")
            results.setdefault("cold seconds", stopped[0]["seconds"])
            results[name] = {"plain": middle(plain), "stopped": middle(stopped)}
            show(name, **results[name])
        print(f"cold: {results['cold seconds'] * 1000:.0f} ms to the first decision")
    results["100-page API"] = await paged()
    show("100-page API (pages)", **results["100-page API"])
    stalled = await trajectory(GeneratorSource(trickle(1, stall_at=64)), "count >= 1000")
    results["stalled source"] = stalled
    told = f"{stalled['reason']} after {stalled['seconds']:.2f} s, {stalled['rows']} rows"
    print(f"stalled source: {told}")
    results["slow tail"] = tail = await slow_tail(40, 1.0)
    p50, p99 = tail["p50_over_ms"], tail["p99_over_ms"]
    print(f"slow tail: p50 {p50:.0f} ms, p99 {p99:.0f} ms over the budget")
    results["synopsis rows/s/core"] = rate = synopsis_rate()
    print(f"synopsis: {rate / 1e6:.2f} M rows/s/core")
    closes = [
        r["stopped"]["close_ms"] for r in results.values() if isinstance(r, dict) and "stopped" in r
    ]
    print(f"upstream closed within {max(closes):.0f} ms (median {statistics.median(closes):.0f})")
    return results


def missed(results: dict[str, Any]) -> list[str]:
    """The bars that these results do not clear."""
    found = []
    for name in ("scan 50k x 10", "3-way join 50k"):
        plain, stopped = results[name]["plain"], results[name]["stopped"]
        for what, least in BARS.items():
            times = plain[what] / max(1e-9, stopped[what])
            if times < least:
                found.append(f"{name}: {what} x{times:,.0f}, and not x{least:,}")
    if (rate := results["synopsis rows/s/core"]) < RATE:
        found.append(f"synopsis: {rate / 1e6:.2f} M rows/s/core, and not {RATE / 1e6:.0f}")
    over = results["slow tail"]["p99_over_ms"]
    if over > OVER_MS:
        found.append(f"slow tail: {over:.0f} ms over its budget, and not {OVER_MS}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help=f"at scale {QUICK}")
    options = parser.parse_args()
    results = asyncio.run(measure(QUICK if options.quick else options.scale))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    if bars := missed(results):
        sys.exit("missed: " + "; ".join(bars))


if __name__ == "__main__":
    main()
