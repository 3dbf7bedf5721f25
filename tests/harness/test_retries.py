"""Claude Code and Codex get over every error that passes, and need nobody's help for it.

A rate limit with its retry-after, a full engine, one that fails before its first token and one
that fails in the middle of a stream: each is told in the API's own way, and asked again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.agents import Agent, scenario, shell, when
from tests.harness.faults import ENDLESS, failing, full, told
from tests.harness.watched import watched

pytestmark = [pytest.mark.harness, pytest.mark.timeout(400)]
RATE = told(429, "rate_limit_error", retry_after="1")
OVERLOADED = told(529, "overloaded_error")


@pytest.mark.parametrize(
    ("name", "faults", "statuses"),
    [
        pytest.param(
            "claude", [RATE, full, failing(0), failing(12)], [429, 529, 500, 200], id="claude"
        ),
        pytest.param(
            "codex", [RATE, OVERLOADED, full, failing(0), failing(12)], [429, 529, 429, 500, 200],
            id="codex",
        ),
    ],
)  # fmt: skip
async def test_errors_that_pass_are_gotten_over(
    name: str, faults: list, statuses: list[int], tmp_path: Path
) -> None:
    rules = [
        ENDLESS,
        when({"think": "At last."}, shell(name, "echo hi-$((40 + 2))"), step=0, tools=True),
        when({"text": "It works. FINAL-OK"}, step=1),
    ]
    options = scenario(tmp_path, *rules) | {"max_turns": 1, "max_waiting": 0}
    async with watched(options=options) as server:
        agent = Agent(name, tmp_path, server.url)
        server.faults.extend(faults)
        assert "FINAL-OK" in await agent.does("Run the command.")
        assert [seen.status for seen in server.seen] == [*statuses, 200, 200]
        refused = [seen for seen in server.seen if seen.status in {429, 529}]
        ours = [seen.headers["retry-after"] for seen in refused if "retry-after" in seen.headers]
        assert all(int(after) >= 1 for after in ours)
        bodies = [seen.body | {"stream": True} for seen in server.seen[: len(faults) + 1]]
        assert all(body == bodies[0] for body in bodies), "it had to change its request"
        assert "hi-42" in server.text(server.jobs[-1])
        server.check_prefix(*server.jobs[-2:])
        assert server.server.engine.stats().running == 0
