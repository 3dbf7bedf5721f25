"""A server of our own for a benchmark: started on a free port, watched, ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[1]
UP_WITHIN = 240.0

KINDS = {  # what a process is, by a word of its command line
    "ingress": "ServeReplica:{app}:ingress",
    "engine": "ServeReplica:{app}:engine",
    "parser": "ParserActor",
    "router": "ServeReplica:{app}:router",
    "store": "ServeReplica:{app}:store",
    "haproxy": "haproxy",
}


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A running `serve run` and all processes below it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def wait_up(self, paths: list[str]) -> None:
        """Until all paths answer 200; raises RuntimeError when the server ends or is too slow."""
        until = time.monotonic() + UP_WITHIN
        missing = list(paths)
        while missing:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server did not come up: {missing} never answered")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self.url(missing[0]), timeout=5).close()  # noqa: S310
                missing.pop(0)
                continue
            time.sleep(0.3)

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


@contextlib.contextmanager
def served(config: Path, paths: list[str]) -> Iterator[Server]:
    """Serve a config on a free port until the block ends."""
    port = free_port()
    content = yaml.safe_load(config.read_text())
    content["http_options"]["port"] = port
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / config.name
        file.write_text(yaml.safe_dump(content))
        log = (Path(folder) / "log").open("wb")
        process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, str(ROOT / "scripts/serve.py"), str(file)],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=ROOT,
        )
        try:
            server = Server(process, port)
            server.wait_up(paths)
            yield server
        except RuntimeError:
            sys.stderr.write((Path(folder) / "log").read_text()[-4000:])
            raise
        finally:
            stop(process)
            log.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and every process that it started."""
    below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.terminate()
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(below, timeout=10)
    for left in alive:
        with contextlib.suppress(psutil.Error):
            left.kill()
