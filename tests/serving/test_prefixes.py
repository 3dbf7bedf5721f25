"""A prefix that breaks is counted with its cause, and the doctor says where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cli.prefix import told
from tests.serving.asks import TOOLS
from tests.serving.server import Server, serving, settings
from tests.serving.sessions import Session

MINE = {"authorization": "Bearer none"}
SAID = [{"think": "pondering"}, {"text": "Checking."}, {"call": {"tool": "forecast"}}]
OTHER = {"name": "other", "description": "Other", "input_schema": {"type": "object"}}


def mutated(body: dict[str, Any]) -> None:
    body["messages"][1]["content"][0]["thinking"] = "something else"


def rewritten(body: dict[str, Any]) -> None:
    body["messages"][1]["content"][1]["text"] = "I never said this."


CHANGES: list[Any] = [
    pytest.param(lambda body: body.update(system="B"), "changed_system", "system", id="system"),
    pytest.param(
        lambda body: body.update(tools=[OTHER]),
        "changed_tools",
        "tools.0",
        id="one tool less",
    ),
    pytest.param(
        lambda body: body.update(tools=body["tools"][::-1]),
        "reordered_tools",
        "tools.0",
        id="tools",
    ),
    pytest.param(mutated, "mutated_reasoning", "messages.1", id="reasoning"),
    pytest.param(rewritten, "edited_reply", "messages.1", id="reply"),
]


def breaks(figures: str) -> dict[str, float]:
    """Breaks by cause."""
    lines = (
        line for line in figures.splitlines() if line.startswith("treadle_prefix_break_total{")
    )
    return {line.split('cause="')[1].split('"')[0]: float(line.split()[-1]) for line in lines}


async def played(server: Server, change: Callable[[Any], None] | None = None) -> list[Any]:
    """Two turns of a session, the second one's request changed."""
    server.says(*SAID)
    session = Session(
        server,
        "messages",
        stream=True,
        system="A",
        tools=[*TOOLS["messages"], OTHER],
        extra_headers={"x-session-id": "s1"},
    )
    first = await session.turn()
    if change is not None:
        change(session.body)
    second = await session.turn()
    await session.close()
    return [first, second]


@pytest.mark.parametrize(("change", "cause", "where"), CHANGES)
async def test_a_break_is_counted_and_explained(
    change: Callable[[Any], None], cause: str, where: str
) -> None:
    async with serving(settings(model={"family": "qwen3_5"})) as server:
        first, second = await played(server, change)
        assert breaks((await server.http.get("/metrics")).text) == {cause: 1.0}
        path = f"/v1/treadle/turns/{second.id}/prefix"
        report = (await server.http.get(path, headers=MINE)).json()
        assert report["break"]["cause"] == cause
        assert report["break"]["where"] == where
        assert report["break"]["lost"] > 0
        assert cause in told(report)
        named = await server.http.get(f"{path}?before={first.id}", headers=MINE)
        assert named.json()["break"] == report["break"]
        stranger = await server.http.get(path, headers={"authorization": "Bearer else"})
        assert stranger.status_code == 404


async def test_long_prompts_are_watched_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.prefixes.INLINE", 0)
    async with serving(settings(model={"family": "qwen3_5"})) as server:
        await played(server, mutated)
        await asyncio.wait_for(server.ingress.prefixes.settled(), 10)
        assert breaks((await server.http.get("/metrics")).text) == {"mutated_reasoning": 1.0}


async def test_an_unbroken_session_counts_nothing() -> None:
    async with serving(settings(model={"family": "qwen3_5"})) as server:
        _, second = await played(server)
        assert breaks((await server.http.get("/metrics")).text) == {}
        report = await server.http.get(f"/v1/treadle/turns/{second.id}/prefix", headers=MINE)
        assert report.json()["whole"] is True
        assert "all the tokens" in told(report.json())
        absent = await server.http.get("/v1/treadle/turns/msg_x/prefix", headers=MINE)
        assert absent.status_code == 404
