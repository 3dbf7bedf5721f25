"""A prefix that breaks is counted with its cause, and the doctor says where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cli.prefix import told
from deployments.settings import AppSettings
from sessions.memory_store import MemoryStore
from sessions.records import PAST
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import MODEL, QUICK, Server, serving, settings
from tests.serving.sessions import Session

MINE = {"authorization": "Bearer none"}
SAID = [{"think": "pondering"}, {"text": "Checking."}, {"call": {"tool": "forecast"}}]
NAMED = {"extra_headers": {"x-session-id": "s1"}}
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


async def test_turns_of_other_ingresses_and_of_before_a_restart_are_seen() -> None:
    store, chosen = MemoryStore(), settings(model={"family": "qwen3_5"})
    async with serving(chosen, store=store) as server:
        first, second = await played(server, mutated)
        path = f"/v1/treadle/turns/{second.id}/prefix"
        report = (await server.http.get(path, headers=MINE)).json()
        await server.ingress.prefixes.settled()
    async with serving(chosen, store=store) as server:
        assert (await server.http.get(path, headers=MINE)).json() == report
        assert report["break"]["cause"] == "mutated_reasoning"
        named = await server.http.get(f"{path}?before={first.id}", headers=MINE)
        assert named.json()["break"] == report["break"]
        stranger = await server.http.get(path, headers={"authorization": "Bearer else"})
        assert stranger.status_code == 404


async def test_two_sessions_of_one_model_are_compared_and_two_models_are_not() -> None:
    models = [
        {"name": name, "family": "qwen3_5", "engine": {"options": QUICK}}
        for name in (MODEL, "other")
    ]
    async with serving(AppSettings.model_validate({"models": models})) as server:
        turns = []
        for model, system in ((MODEL, "Be brief."), (MODEL, "Be kind."), ("other", "Be brief.")):
            body = ask("messages", model=model, system=system)
            answer = await server.http.post(PATHS["messages"], json=body, headers=MINE)
            turns.append(answer.json()["id"])
        path = f"/v1/treadle/turns/{turns[1]}/prefix?before="
        report = (await server.http.get(path + turns[0], headers=MINE)).json()
        assert report["break"]["cause"] == "changed_system"
        assert "brief" in report["break"]["before"]
        assert "kind" in report["break"]["after"]
        refused = await server.http.get(path + turns[2], headers=MINE)
        assert refused.status_code == 400


async def test_a_sub_agent_in_between_is_not_the_turn_before() -> None:
    async with serving(settings(model={"family": "qwen3_5"})) as server:
        server.says(*SAID)
        session = Session(server, "messages", stream=False, **NAMED)
        first = await session.turn()
        other = [{"role": "user", "content": "I am a sub-agent."}]
        agent = Session(server, "messages", stream=False, messages=other, **NAMED)
        await agent.turn()
        second = await session.turn()
        answer = await server.http.get(f"/v1/treadle/turns/{second.id}/prefix", headers=MINE)
        assert answer.json()["whole"] is True
        assert answer.json()["before"] in first.id
        await session.close()
        await agent.close()


async def test_the_store_need_not_keep_turns() -> None:
    chosen = settings(store={"redis": "memory", "past_ttl_s": 0})
    async with serving(chosen) as server:
        _, second = await played(server)
        answer = await server.http.get(f"/v1/treadle/turns/{second.id}/prefix", headers=MINE)
        assert answer.status_code == 200
        await server.ingress.prefixes.settled()
        assert PAST.name not in str(vars(server.store))
