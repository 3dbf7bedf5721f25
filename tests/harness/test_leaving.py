"""Ctrl-C in the middle of a stream: the harness leaves, and the engine's work ends with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.agents import EACH, Agent, scenario, when
from tests.harness.watched import watched
from tests.serving.waits import until

pytestmark = [pytest.mark.harness, pytest.mark.timeout(400)]
ON_AND_ON = when({"endless": "and on "}, tools=True) | {"tokens": {"step_ms": 10}}


@EACH
async def test_the_engine_stops_when_the_harness_is_stopped(name: str, tmp_path: Path) -> None:
    async with watched(options=scenario(tmp_path, ON_AND_ON)) as server:
        engine = server.server.engine
        started = await Agent(name, tmp_path, server.url).begins("Go on for ever.")
        await until(
            lambda: len(engine.output) == 1 and len(*engine.output.values()) > 20, within=60
        )
        started.stop()
        await started.said(within=60)
        await until(lambda: engine.stats().running == 0, within=30)
        (job,) = engine.jobs
        assert list(engine.aborts) == [job.turn]
        assert [(seen.status, seen.left) for seen in server.seen] == [(200, True)]
        await until(lambda: len(server.server.conductor) == 0, within=30)
        assert server.server.replica.lanes.parsing == 0
