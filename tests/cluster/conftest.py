"""One cluster for all tests of the folder: started once, watched from inside, ended with no rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.served import Server, served
from tests.cluster.control import Control, until

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with served(HERE / "cluster.yaml", ["/health"]) as running:
        yield running
    assert running.processes() == [], "the server left processes behind"


@pytest.fixture(scope="session")
def joined(server: Server) -> Iterator[Control]:
    control = Control(server)
    yield control
    control.close()


@pytest.fixture
def control(joined: Control) -> Control:
    """The cluster seen from inside, whole and idle as the test begins."""
    until("both engines up and read", joined.whole, within=60)
    joined.assert_idle()
    return joined
