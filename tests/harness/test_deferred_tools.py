"""Tools that a harness shows only when they are searched for: Claude Code's and Codex's own.

What was found is shown where it was found, so the prompt only grows; then it is called, and the
harness knows it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deployments import profiles
from tests.harness.agents import Agent, scenario, when
from tests.harness.clis import CATALOGUE
from tests.harness.watched import Watched, watched

pytestmark = [pytest.mark.harness, pytest.mark.timeout(400)]


def check_growth(server: Watched) -> list[str]:
    """Three calls, each with all of the one before; the prompts in plain."""
    first, second, third = server.jobs
    server.check_prefix(first, second)
    server.check_prefix(second, third)
    assert [seen.status for seen in server.seen] == [200] * 3
    return [server.text(job) for job in server.jobs]


async def test_claude_code_finds_a_deferred_tool_and_calls_it(tmp_path: Path) -> None:
    query = {"query": "select:CronList"}
    rules = [
        when({"call": {"tool": "ToolSearch", "arguments": query}}, step=0, tool="ToolSearch"),
        when({"call": {"tool": "CronList", "arguments": {}}}, step=1, tool="CronList"),
        when({"text": "Nothing is planned. FINAL-OK"}, step=2),
    ]
    agent = Agent("claude", tmp_path, "")
    async with watched(options=scenario(tmp_path, *rules)) as server:
        agent.url = server.url
        assert "FINAL-OK" in await agent.does("Is anything planned?")
        texts = check_growth(server)
        declared = '"name": "CronList"'
        assert [text.count(declared) for text in texts] == [0, 1, 2]  # the last one is the call
        assert "DeferredToolPlaceholder" not in texts[0]
        result = server.seen[2].body["messages"][-1]["content"][0]
        assert result["type"] == "tool_result"
        assert not result.get("is_error")
        assert "tool_use_error" not in str(result["content"])


async def test_codex_finds_a_deferred_tool_and_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "searching.yaml").write_text("search_tool: true\n")
    monkeypatch.setattr(profiles, "FOLDER", tmp_path)
    search = {"tool": "tool_search", "arguments": {"query": "close agent", "limit": 8}}
    close = {"tool": "multi_agent_v1__close_agent", "arguments": {"target": "nobody"}}
    rules = [
        when({"call": search}, step=0, tool="tool_search"),
        when({"call": close}, step=1),
        when({"text": "There was nobody. FINAL-OK"}, step=2),
    ]
    agent = Agent("codex", tmp_path, "", provider=CATALOGUE)
    served = {"model": {"profile": "searching"}, "options": scenario(tmp_path, *rules)}
    async with watched(**served) as server:
        agent.url = server.url
        assert "FINAL-OK" in await agent.does("Close the agent.")
        texts = check_growth(server)
        declared = '"name": "multi_agent_v1__close_agent"'
        assert [text.count(declared) for text in texts] == [0, 1, 2]
        result = server.seen[2].body["input"][-1]
        assert result["type"] == "function_call_output"
        assert "unsupported call" not in result["output"]
        assert "nobody" in result["output"]
