"""The tests' view of a served application: counts what counts turns, finds processes, kills them."""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

from benchmarks.served import Server
from tests.cluster.driver import Driver

T = TypeVar("T")
MODEL = "lab-model"
ENGINE = "engine-lab-model"
WITHIN = 30.0
"""Seconds that anything which must happen may take on a loaded machine."""


def until(what: str, look: Callable[[], T], *, within: float = WITHIN, every: float = 0.02) -> T:
    """Look again and again until what is seen is true; fails with what was seen last."""
    end = time.monotonic() + within
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {within:g} s; last seen {seen!r}")
        time.sleep(every)


class Control:
    """One application of a server, asked through a driver inside it."""

    def __init__(self, server: Server, driver: Driver, app: str = "treadle", at: str = "") -> None:
        self.server = server
        self._driver = driver
        self._app = app
        self._at = at

    def ask(self, question: str, **arguments: Any) -> Any:
        return self._driver.ask(question, app=self._app, **arguments)

    def replicas(self, deployment: str) -> dict[str, int]:
        """The living replicas of a deployment and their process ids."""
        found: dict[str, int] = self.ask("replicas", deployment=deployment)
        return found

    def parsers(self) -> dict[str, int]:
        """The living parser actors and their process ids."""
        found: dict[str, int] = self._driver.ask("parsers")
        return found

    def kill(self, pid: int) -> float:
        """SIGKILL one process of our own server; gives the moment."""
        assert pid in {process.pid for process in self.server.processes()}
        now = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        return now

    def engines(self) -> dict[str, dict[str, Any]]:
        """The figures of each engine replica that the router knows."""
        return {
            name: self.ask("ask", deployment=ENGINE, method="probe", replica=name)
            for name in self.routed()
        }

    def aborts(self) -> int:
        """Turns that engines have aborted so far."""
        return sum(figures["aborts_total"] for figures in self.engines().values())

    def ingress(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("ask", deployment="ingress", method="probe")
        return found

    def routed(self) -> dict[str, dict[str, int]]:
        """What the router believes of each engine replica."""
        seen: dict[str, Any] = self.ask("ask", deployment="router", method="load")
        return seen.get(MODEL, {})

    def queued(self) -> int:
        """The turns that wait in the router's queue."""
        seen = self.ask("ask", deployment="router", method="figures")
        return int(seen.get(MODEL, {}).get("queued", 0))

    def counts(self) -> dict[str, int]:
        """Everything that counts a turn: all zero when the cluster is idle."""
        router, engines = self.routed(), list(self.engines().values())
        in_flight = self.metric("treadle_turns_in_flight").values()
        return {
            "ingress turns": self.ingress()["turns"],
            "open leases": sum(one["open_turns"] for one in engines),
            "running": sum(one["running"] for one in engines),
            "waiting": sum(one["waiting"] for one in engines),
            "prompt tokens to come": sum(one["prefill_tokens"] for one in engines),
            "turns parsed": self._driver.ask("open_parsings"),
            "reserved": sum(one["turns"] for one in router.values()),
            "reported": sum(one["reported"] for one in router.values()),
            "queued": self.queued(),
            "in flight by the metrics": int(sum(map(abs, in_flight))),
        }

    def assert_idle(self, within: float = WITHIN) -> None:
        """Every count comes back to zero."""
        end = time.monotonic() + within
        while open_ := {name: count for name, count in self.counts().items() if count}:
            assert time.monotonic() < end, f"not zero after {within:g} s: {open_}"

    def whole(self) -> bool:
        """Both engines are up, known to everybody, and read by the ingress."""
        engines = set(self.replicas(ENGINE))
        lanes = {lane.rsplit("-", 1)[0].removeprefix("parser-") for lane in self.ingress()["lanes"]}
        return len(engines) == 2 and engines == set(self.routed()) == lanes

    def metric(self, name: str) -> dict[str, float]:
        """The samples of one metric, by their labels as they stand."""
        with urllib.request.urlopen(
            self.server.url(f"{self._at}/metrics"), timeout=WITHIN
        ) as answer:
            lines = answer.read().decode().splitlines()
        found = {}
        for line in lines:
            head, _, value = line.rpartition(" ")
            bare, _, labels = head.partition("{")
            if bare == name:
                own = re.sub(r',?process="[^"]*"', "", labels.rstrip("}")).strip(",")
                found[own] = float(value)
        return found
