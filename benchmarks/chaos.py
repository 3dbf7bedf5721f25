"""Seeded kills of every kind of process under load: every stream ends complete and correct.

Only who holds the client's connection (ingress, HAProxy) may cut it. The bars: no stream is wrong,
none says nothing new for over 10 s while it is connected, and all counts return to zero.
Run: python benchmarks/chaos.py [--kills 100] [--seed 1] [--clients 16] [--kinds engine,parser,...]
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from served import ROOT, served

from tests.cluster.chaos import KINDS, Seen, chaos, drawn
from tests.cluster.control import Control, until
from tests.cluster.driver import Driver

CUTTING = {"ingress", "haproxy"}
LONGEST = 10.0


def progress(seen: Seen) -> None:
    """One line a kill: a long run that is broken off has its figures so far."""
    struck, wrong = sum(seen.kills.values()), len(seen.wrong)
    print(
        f"{struck:4} kills, {seen.whole} streams whole, {seen.cut} cut, {seen.refused} refused, "
        f"{wrong} wrong, "
        f"{seen.gap:.1f} s at most",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--kinds", default=",".join(KINDS))
    chosen = parser.parse_args()
    kinds = drawn(chosen.kills, chosen.seed, chosen.kinds.split(","))
    with served(ROOT / "tests/cluster/cluster.yaml", ["/health"]) as server:
        driver = Driver(server)
        control = Control(server, driver)
        until("both engines up and read", control.whole, within=120)
        seen = asyncio.run(
            chaos(server, control, kinds, seed=chosen.seed, clients=chosen.clients, told=progress)
        )
        driver.close()
    print(
        f"{seen.whole} streams whole, {seen.cut} cut and {seen.refused} refused and asked again, "
        f"{len(seen.wrong)} wrong"
    )
    print(f"killed: {seen.kills}; longest silence of a stream {seen.gap:.1f} s (bar {LONGEST:g})")
    for wrong in seen.wrong[:5]:
        print(wrong)
    may_cut = bool(CUTTING & set(seen.kills))
    holds = not seen.wrong and seen.gap <= LONGEST and (may_cut or not seen.cut + seen.refused)
    print("OK" if holds else "FAIL")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
