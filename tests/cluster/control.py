"""The tests' view of a served cluster: counts what counts turns, finds processes, kills them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

from benchmarks.served import ROOT, Server

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


def outside() -> dict[str, str]:
    """The environment without Serve's flags, which bind a handle to the loop it was made on."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_SERVE_")}


class Control:
    """One server, asked through a driver inside it (`tests.cluster.inside`)."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._log = (server.folder / "inside.log").open("wb")
        self._inside = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.inside", server.gcs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env=outside() | {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "token"},
        )

    def close(self) -> None:
        assert self._inside.stdin
        assert self._inside.stdout
        self._inside.stdin.close()  # the end of its questions
        try:
            self._inside.wait(10)
        except subprocess.TimeoutExpired:
            self._inside.kill()
            self._inside.wait(10)
        self._inside.stdout.close()
        self._log.close()

    def ask(self, question: str, **arguments: Any) -> Any:
        """The answer of the driver inside; what went wrong there fails the test."""
        assert self._inside.stdin
        assert self._inside.stdout
        line = json.dumps({"question": question} | arguments)
        self._inside.stdin.write(line.encode() + b"\n")
        self._inside.stdin.flush()
        ready, _, _ = select.select([self._inside.stdout], [], [], 2 * WITHIN)
        assert ready, f"no answer to {line}"
        found = json.loads(self._inside.stdout.readline())
        assert "error" not in found, f"{line}: {found['error']}"
        return found["answer"]

    def replicas(self, deployment: str) -> dict[str, int]:
        """The living replicas of a deployment and their process ids."""
        found: dict[str, int] = self.ask("replicas", deployment=deployment)
        return found

    def parsers(self) -> dict[str, int]:
        """The living parser actors and their process ids."""
        found: dict[str, int] = self.ask("parsers")
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
            "turns parsed": self.ask("open_parsings"),
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
        with urllib.request.urlopen(self.server.url("/metrics"), timeout=WITHIN) as answer:
            lines = answer.read().decode().splitlines()
        found = {}
        for line in lines:
            head, _, value = line.rpartition(" ")
            bare, _, labels = head.partition("{")
            if bare == name:
                found[labels.rstrip("}")] = float(value)
        return found
