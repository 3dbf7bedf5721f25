"""One cluster for all tests of the folder: started once, watched from inside, ended with no rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.served import Server, served
from tests.cluster import wire
from tests.cluster.control import Control, until
from tests.cluster.driver import Driver

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with served(HERE / "cluster.yaml", ["/health"]) as running:
        yield running
    assert running.processes() == [], "the server left processes behind"


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
