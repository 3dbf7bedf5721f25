"""A conversation that outgrows the model's window is summed up, and goes on.

Claude Code waits for the refusal and knows it by its words. Codex reckons by the window that the
catalogue gives and the usage that it is told, and asks for a summary before it comes to that.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agents import Agent, scenario, when
from tests.harness.clis import CATALOGUE
from tests.harness.watched import Watched, watched

pytestmark = [pytest.mark.harness, pytest.mark.timeout(400)]
LONG = "Now look at these words. " * 300
SUMMARY = "They count and count. SUMMARY-1"
RULES = [
    when({"text": f"<summary>{SUMMARY}</summary>"}, user_contains="<summary> block"),
    when({"text": SUMMARY}, tools=False),
    when({"text": "Back again. FINAL-OK"}, user_contains="look at these words"),
    when({"lorem": 1500}, tools=True),
]


def served(folder: Path, window: int) -> dict[str, Any]:
    """Settings of a server that answers 1,500 tokens to anything short."""
    options = scenario(folder, *RULES) | {"max_model_len": window}
    return {"model": {"family": "qwen3_5"}, "options": options}


async def talk(agent: Agent, server: Watched) -> None:
    """Two prompts with long answers, and a long prompt."""
    agent.url = server.url
    await agent.does("Count, please.")
    await agent.does("Go on.", go_on=True)
    assert [seen.status for seen in server.seen] == [200, 200]
    assert "FINAL-OK" in await agent.does(LONG, go_on=True)


async def test_claude_code_sums_up_what_was_refused_as_too_long(tmp_path: Path) -> None:
    async with watched(**served(tmp_path, 19_000)) as server:
        await talk(Agent("claude", tmp_path, ""), server)
        assert [seen.status for seen in server.seen[2:]] == [400, 200, 200]
        error = json.loads(server.seen[2].said)["error"]
        assert error["message"].startswith("prompt is too long: ")
        asked, went_on = server.jobs[2:]
        assert "SUMMARY-1" in server.text(went_on)
        # A summary is asked for behind the conversation: the cache holds all but the question.
        assert server.server.engine.cached[asked.turn] > len(server.jobs[1].prompt) - 64


async def test_codex_sums_up_before_the_window_is_full(tmp_path: Path) -> None:
    async with watched(**served(tmp_path, 10_200)) as server:
        await talk(Agent("codex", tmp_path, "", provider=CATALOGUE), server)
        assert [seen.status for seen in server.seen[2:]] == [200, 200]
        assert server.seen[2].body["tools"] == []
        assert server.seen[3].body["tools"] != []
        assert "SUMMARY-1" in server.text(server.jobs[3])
        before, _, went_on = server.jobs[1:]
        assert len(went_on.prompt) < len(before.prompt) + len(server.output(before))


async def test_codex_says_that_there_is_no_room(tmp_path: Path) -> None:
    async with watched(**served(tmp_path, 4_000)) as server:
        said = await Agent("codex", tmp_path, server.url).does("Count, please.", good=False)
        assert "ran out of room" in said
        (seen,) = server.seen
        assert seen.status == 400
        assert json.loads(seen.said)["error"]["code"] == "context_length_exceeded"
