"""A few hundred mutated requests of each API; `fuzz/fuzz_requests.py` sends thousands."""

from __future__ import annotations

import pytest

from tests.serving import fuzzing
from tests.serving.asks import PATHS
from tests.serving.server import Server
from tests.serving.waits import until


@pytest.mark.parametrize("api", PATHS)
async def test_whatever_is_sent_is_answered_or_refused(server: Server, api: str) -> None:
    server.says({"text": "ok"})
    tally = await fuzzing.run(server, api, count=300, seed=1)
    assert {200, 400} <= set(tally.statuses)
    await until(lambda: not server.replica.inner.open_turns and not server.replica.lanes.parsing)
    assert len(server.conductor) == 0
