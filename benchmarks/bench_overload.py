"""Ten times more turns than there are places for, through the whole server on a real cluster.

Sixteen places of a scripted engine, asked on all three APIs by clients that come at a fixed rate
and never come back; once with a router that refuses at once, once with the queue that is the
default. Bars: who is refused hears so within half a second (p99), in his API's own shape, and is
told a time within which a place did come free for him, as the last; what is admitted is said as
fast as on an idle server (p99 within 1.2 times, from its place on); nobody waits longer than the
queue's patience; the processes on a turn's way do not grow from one round to the next; all counts
return to zero.
Run: python benchmarks/bench_overload.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from served import ROOT, Server, served
from sse_load import http, percentile

from deployments.settings import RouterSettings
from tests.cluster import wire
from tests.cluster.asks import APIS, PATHS, ask
from tests.cluster.churn import ENDS
from tests.cluster.control import Control
from tests.cluster.driver import Driver

HERE = Path(__file__).resolve().parent
PLACES, WORDS, TIMES = 16, 100, 10
PATIENCE = RouterSettings().queue_patience_s
STATUS = {"messages": (529, "overloaded_error")}
REFUSED = (429, "rate_limit_error")
SLOWER, REFUSED_WITHIN, HONEST, GROWTH_MIB = 1.2, 0.5, 0.95, 16.0
AT_ONCE = 1.0  # seconds to a first token, of a turn that had not to wait for a place
PROCESSES = ("ingress", "router", "engine")


@dataclass
class Asked:
    """One request. Times on one clock; `first` is that of its first content, 0 without any."""

    api: str
    sent: float
    first: float = 0.0
    end: float = 0.0
    retry_after: int = 0
    wrong: str = ""

    @property
    def admitted(self) -> bool:
        return not self.retry_after and not self.wrong


async def one(port: int, app: str, number: int) -> Asked:
    """Ask once and read the answer to its end."""
    api = APIS[number % len(APIS)]
    seen, got = Asked(api, time.monotonic()), b""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = ask(api, f"say {WORDS} words (number {number})")
        writer.write(http(f"/{app}{PATHS[api]}", body, port))
        async with asyncio.timeout(PATIENCE * 2):
            while data := await reader.read(65536):
                got += data
                if not seen.first and wire.DELTAS[api] in got:
                    seen.first = time.monotonic()
        writer.close()
    except (OSError, TimeoutError) as error:
        seen.wrong = repr(error)
    seen.end = time.monotonic()
    judge(seen, got)
    return seen


def judge(seen: Asked, got: bytes) -> None:
    """Whether it is a whole answer, or a refusal in its API's shape."""
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    if " 200 " in lines[0]:
        if ENDS[seen.api] not in body or not seen.first:
            seen.wrong = seen.wrong or f"{seen.api}: no end: {body[-200:]!r}"
        return
    status, kind = STATUS.get(seen.api, REFUSED)
    told = [line for line in lines if line.startswith("retry-after:")]
    try:
        error = json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])["error"]
        seen.retry_after = int(told[0].split(":")[1])
        if f" {status} " not in lines[0] or error["type"] != kind or seen.retry_after < 1:
            seen.wrong = f"{seen.api}: {got[:300]!r}"
    except (ValueError, KeyError, IndexError):
        seen.wrong = seen.wrong or f"{seen.api}: {got[:300]!r}"


async def come(port: int, app: str, rate: float, seconds: float) -> list[Asked]:
    """Clients at a fixed rate, whatever becomes of those before."""
    asking, began = [], time.monotonic()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        asking.append(asyncio.ensure_future(one(port, app, number)))
    return await asyncio.gather(*asking)


def memory(server: Server, app: str) -> dict[str, float]:
    """MiB that the processes on a turn's way hold for themselves."""
    found = {kind: server.process_of(kind, app).memory_full_info().uss for kind in PROCESSES}
    return {kind: size / 2**20 for kind, size in found.items()}


def honest(seen: list[Asked]) -> float:
    """The share of refusals within whose time places came free for all who waited then, and one
    more.
    """
    admitted = [one for one in seen if one.admitted]
    queued = [one for one in admitted if one.first - one.sent > AT_ONCE]
    sent, begun = sorted(one.sent for one in queued), sorted(one.first for one in queued)
    freed = sorted(one.end for one in admitted)
    refused = [one for one in seen if one.retry_after]
    kept = 0
    for one in refused:
        waiting = bisect_right(sent, one.end) - bisect_right(begun, one.end)
        within = bisect_right(freed, one.end + one.retry_after + 0.5)
        kept += within - bisect_right(freed, one.end) > waiting
    return kept / max(1, len(refused))


def verdict(what: str, holds: bool) -> bool:
    print(f"{'holds' if holds else 'FAILS'}: {what}", flush=True)
    return holds


def part(server: Server, driver: Driver, app: str, seconds: float) -> bool:
    """One application: idle, then overloaded twice."""
    control = Control(server, driver, app=app, at=f"/{app}")
    idle = asyncio.run(come(server.port, app, 1.0, seconds))
    turn = percentile([one.end - one.sent for one in idle], 0.5)
    rate = TIMES * PLACES / turn
    rounds, sizes = [], []
    for _ in range(2):
        rounds.append(asyncio.run(come(server.port, app, rate, seconds)))
        control.assert_idle(60)
        sizes.append(memory(server, app))
    return shown(app, idle, [one for seen in rounds for one in seen], rate, sizes)


def shown(
    app: str, idle: list[Asked], seen: list[Asked], rate: float, sizes: list[dict[str, float]]
) -> bool:
    taken, refused = [a for a in seen if a.admitted], [a for a in seen if a.retry_after]
    wrong = [a.wrong for a in (*idle, *seen) if a.wrong]
    said = [percentile([a.end - a.first for a in group], 0.99) for group in (idle, taken)]
    ttft = [percentile([a.first - a.sent for a in group], 0.99) for group in (idle, taken)]
    told = [a.retry_after for a in refused]
    heard = [a.end - a.sent for a in refused]
    grown = {kind: sizes[1][kind] - sizes[0][kind] for kind in PROCESSES}
    print(f"\n## {app}: {rate:.0f} turns a second for {PLACES} places\n")
    print(f"{len(taken)} admitted, {len(refused)} refused, {len(wrong)} wrong {wrong[:2]}")
    print(f"first token p99 {ttft[1]:.2f} s, idle {ttft[0]:.2f} s")
    print(f"retry-after {min(told)} to {max(told)} s; honest for {honest(seen):.1%}")
    print("grown by " + ", ".join(f"{kind} {size:.1f} MiB" for kind, size in grown.items()))
    p50, p99 = percentile(heard, 0.5), percentile(heard, 0.99)
    return all(
        [
            verdict("every answer is whole or a refusal in its API's shape", not wrong),
            verdict(f"refused within {p50:.3f} s p50, {p99:.3f} s p99", p99 <= REFUSED_WITHIN),
            verdict("retry-after is honest", honest(seen) >= HONEST),
            verdict(
                f"from the first token on p99 {said[1]:.2f} s, {said[1] / said[0]:.2f} times idle",
                said[1] <= SLOWER * said[0],
            ),
            verdict(f"nobody waits over {PATIENCE:g} s", ttft[1] <= PATIENCE + ttft[0] + 1),
            verdict("memory is bounded", max(grown.values()) <= GROWTH_MIB),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    seconds = 12.0 if parser.parse_args().quick else 40.0
    apps = ("refusing", "queueing")
    with served(ROOT / "benchmarks/clusters/overload.yaml", [f"/{a}/health" for a in apps]) as up:
        driver = Driver(up)
        held = [part(up, driver, app, seconds) for app in apps]
        driver.close()
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
