"""One cluster for all tests of the folder: started once, watched from inside, ended with no rest."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.served import Server, served
from tests.cluster import wire
from tests.cluster.control import Control, until
from tests.cluster.driver import Driver

HERE = Path(__file__).resolve().parent
ROWS = 5000
"""Orders of the shop that the gateway's tool reads."""


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with served(HERE / "cluster.yaml", ["/health"]) as running:
        yield running
    assert running.processes() == [], "the server left processes behind"


@pytest.fixture(scope="session")
def url(server: Server) -> str:
    """The gateway's address; its sources are there from now on."""
    with contextlib.closing(sqlite3.connect(server.folder / "shop.sqlite")) as shop, shop:
        shop.execute("CREATE TABLE orders (id INTEGER, user_id INTEGER, status TEXT)")
        shop.executemany(
            "INSERT INTO orders VALUES (?, ?, ?)",
            [(n, n % 17, "late" if n % 10 == 3 else "sent") for n in range(ROWS)],
        )
    (server.folder / "heartbeat.log").write_text("begun\n")
    server.wait_for_route("/mcp")
    return server.url("/mcp")


@pytest.fixture(autouse=True)
def hung_up() -> Iterator[None]:
    """No connection outlives its test, and every stream of it was right as far as it was read."""
    yield
    found = []
    while wire.OPENED:
        exchange = wire.OPENED.pop()
        exchange.close()
        found += exchange.faults()
    assert found == []


@pytest.fixture(scope="session")
def driver(server: Server) -> Iterator[Driver]:
    driver = Driver(server)
    yield driver
    driver.close()


@pytest.fixture
def control(server: Server, driver: Driver) -> Control:
    """The application seen from inside, whole and idle as the test begins."""
    control = Control(server, driver)
    until("both engines up and read", control.whole, within=60)
    control.assert_idle()
    return control
