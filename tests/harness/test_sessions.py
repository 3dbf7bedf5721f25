"""Sessions of the real Claude Code and Codex: calls side by side, three prompts, and one resumed.

Between any two calls of a session the engine's cache holds all that went before: the counters are
its own. The model is of a family that keeps what it thought before an answer; others drop it by
their template. The last prompt comes to a server that has never heard of the session.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agents import EACH, Agent, scenario, shell, when
from tests.harness.watched import watched

pytestmark = [pytest.mark.harness, pytest.mark.timeout(400)]


def rules(name: str) -> list[dict[str, Any]]:
    """Two calls at once and an answer, a call and an answer, an answer, an answer."""
    return [
        when(
            {"think": "Two things at once, then."},
            {"text": "I ask both."},
            shell(name, "echo first-$((40 + 1))"),
            shell(name, "echo second-$((40 + 2))"),
            turn=0,
            step=0,
            tools=True,
        ),
        when({"think": "Both are there."}, {"text": "Both are done. FINAL-1"}, turn=0, step=2),
        when(
            {"think": "One more."},
            shell(name, "echo third-$((40 + 3))"),
            turn=1,
            step=0,
            tools=True,
        ),
        when({"think": "That is it."}, {"text": "It is done, too. FINAL-2"}, turn=1, step=1),
        when({"think": "Nothing to do."}, {"text": "No call was needed. FINAL-3"}, turn=2),
        when({"think": "I remember."}, {"text": "I remember all. FINAL-4"}, turn=3),
    ]


@EACH
async def test_every_call_of_a_session_finds_all_that_went_before(
    name: str, tmp_path: Path
) -> None:
    agent = Agent(name, tmp_path, "")
    served = {"model": {"family": "qwen3_5"}, "options": scenario(tmp_path, *rules(name))}
    async with watched(**served) as server:
        agent.url = server.url
        assert "FINAL-1" in await agent.does("Run both commands.")
        assert "FINAL-2" in await agent.does("And the third one.", go_on=True)
        assert "FINAL-3" in await agent.does("Anything else?", go_on=True)
        assert [seen.status for seen in server.seen] == [200] * 5
        assert len(server.jobs) == 5
        for before, after in pairwise(server.jobs):
            server.check_prefix(before, after)
        texts = [server.text(job) for job in server.jobs]
        assert "first-41" in texts[1]
        assert "second-42" in texts[1]
        assert "third-43" in texts[3]
        last = server.jobs[-1].prompt + server.output(server.jobs[-1])
    async with watched(**served) as other:
        agent.url = other.url
        assert "FINAL-4" in await agent.does("Do you remember?", go_on=True)
        assert other.jobs[0].prompt[: len(last)] == last
