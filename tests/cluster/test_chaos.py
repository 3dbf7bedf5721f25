"""`just chaos` at a small size: processes die under load, and no stream shows it."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.served import Server
from tests.cluster.chaos import chaos, drawn
from tests.cluster.control import Control

pytestmark = pytest.mark.ray

KINDS = ["engine", "parser", "router", "valkey"]
"""Those of which no client may see anything; the others are in `test_failures.py`."""


def test_no_stream_shows_that_processes_die(server: Server, control: Control) -> None:
    kinds = drawn(len(KINDS) + 1, 3, KINDS)
    seen = asyncio.run(chaos(server, control, kinds, seed=3, clients=8))
    assert seen.wrong == []
    assert (seen.cut, seen.refused) == (0, 0)
    assert seen.whole > len(kinds)
    assert sum(seen.kills.values()) == len(kinds)
