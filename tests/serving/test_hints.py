"""Hints on every API, from the request to the router and the engine, and from turn to turn."""

from __future__ import annotations

from typing import Any

import pytest

from actors import warming
from router.decision import Ask
from router.router import Router
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import Server, serving, settings
from tests.serving.sessions import Session
from tests.serving.waits import until

EACH = pytest.mark.parametrize("api", PATHS)
CALL = {"call": {"tool": "forecast", "arguments": {"days": 1, "place": "Bergen"}}}
SPECULATE: dict[str, Any] = {
    "extra_body": {"nvext": {"agent_hints": {"speculative_prefill": True}}},
    "extra_headers": {"x-treadle-session": "s1"},
}
SMALL = {"block_size": 4, "max_model_len": 16_384}
LONG = " ".join(f"word{n}" for n in range(60))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Ask]:
    """What routers were asked."""
    seen: list[Ask] = []
    choose = Router.choose

    def heard(self: Router, asked: Ask, now: float) -> Any:
        seen.append(asked)
        return choose(self, asked, now)

    monkeypatch.setattr(Router, "choose", heard)
    return seen


async def post(server: Server, api: str, headers: dict[str, str], **fields: Any) -> None:
    answer = await server.http.post(PATHS[api], json=ask(api, **fields), headers=headers)
    assert answer.status_code == 200, answer.text


@EACH
async def test_hints_reach_router_and_engine_and_hold_for_the_session(
    api: str, asked: list[Ask]
) -> None:
    async with serving() as server:
        mine = {"x-treadle-session": "s1", "authorization": "Bearer me"}
        agent = {"priority": 5, "osl": 77, "latency_sensitivity": 0.9}
        await post(server, api, mine, nvext={"agent_hints": agent, "cache_salt": "apart"})
        await server.keeper.settled()
        await post(server, api, mine)
        record = await server.store.session(asked[0].tenant, "s1")
        assert record is not None
        assert (record.hints.priority, record.turns) == (5, 2)
        for one in asked:
            assert (one.priority, one.osl, one.latency) == (5, 77, 0.9)
            assert one.tenant
        first, second = server.engine.jobs
        assert [first.priority, second.priority] == [-5, -5]
        assert first.salt == f"{second.salt}/apart"
        assert asked[0].hashes != asked[1].hashes
        own = {"x-treadle-session": "s2", "x-treadle-priority": "-3", "x-treadle-tier": "1"}
        await post(server, api, own)
        assert (asked[2].priority, asked[2].tier, asked[2].latency) == (-3, 1, None)
        assert server.engine.jobs[2].priority < min(first.priority, second.priority)


@EACH
async def test_the_length_of_a_reply_is_learnt(api: str, asked: list[Ask]) -> None:
    async with serving() as server:
        server.says({"text": LONG})
        mine = {"x-treadle-session": "s1"}
        await post(server, api, mine)
        await server.keeper.settled()
        await post(server, api, mine)
        said = len(server.engine.output[server.engine.jobs[0].turn])
        assert asked[0].osl is None
        assert asked[1].osl is not None
        assert abs(asked[1].osl - said) <= 2
        await server.keeper.settled()
        record = await server.store.session(asked[0].tenant, "s1")
        assert record is not None
        assert record.osl == asked[1].osl
        assert record.hints.osl is None  # what was learnt is nothing that was said


async def test_nothing_is_learnt_of_another_tenants_session(asked: list[Ask]) -> None:
    async with serving() as server:
        server.says({"text": LONG})
        for who in ("me", "you"):
            mine = {"x-treadle-session": "s1", "authorization": f"Bearer {who}"}
            await post(server, "chat", mine)
            await server.keeper.settled()
        for one in asked:
            record = await server.store.session(one.tenant, "s1")
            assert record is not None
            assert (record.turns, record.osl) == (1, 0)


@EACH
async def test_the_next_prompt_is_computed_ahead_where_reasoning_is_dropped(api: str) -> None:
    async with serving(settings(model={"family": "step3"}, options=SMALL)) as server:
        server.says({"think": LONG}, {"text": "Checking. "}, CALL)
        session = Session(server, api, stream=True)
        session.body |= SPECULATE
        await session.turn()
        await until(lambda: len(server.engine.jobs) == 2)
        first, warm = server.engine.jobs
        assert warm.turn.startswith("warm-")
        assert warm.priority > first.priority
        await until(lambda: not server.ingress.warmer._flights)
        await session.turn()
        real = server.engine.jobs[2]
        assert real.prompt[: len(warm.prompt)] == warm.prompt
        assert len(warm.prompt) > len(first.prompt)
        assert server.engine.cached[real.turn] >= len(warm.prompt) // 4 * 4
        await session.close()


@EACH
async def test_nothing_is_computed_ahead_where_the_reply_is_kept(api: str) -> None:
    async with serving(settings(model={"family": "qwen3_5"})) as server:
        server.says({"text": "Checking. "}, CALL)
        session = Session(server, api, stream=True)
        session.body |= SPECULATE
        await session.turn()
        await until(lambda: not server.ingress.warmer._thinking)
        assert len(server.engine.jobs) == 1
        await session.close()


@pytest.mark.parametrize(
    ("api", "fields"),
    [
        pytest.param("messages", {"cache_control": {"type": "ephemeral", "ttl": "1h"}}, id="top"),
        pytest.param(
            "messages",
            {
                "system": [
                    {
                        "type": "text",
                        "text": "Be brief.",
                        "cache_control": {"type": "ephemeral", "ttl": "1h"},
                    }
                ]
            },
            id="system-block",
        ),
        pytest.param(
            "messages",
            {
                "tools": [
                    TOOLS["messages"][0] | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
                ]
            },
            id="tool",
        ),
        pytest.param("chat", {"cache_control": {"ttl": "1h"}}, id="chat"),
        pytest.param("responses", {"nvext": {"cache_control": {"ttl": 3600}}}, id="responses"),
    ],
)
async def test_a_ttl_pins_the_session_until_it_ends(
    api: str, fields: dict[str, Any], asked: list[Ask]
) -> None:
    async with serving() as server:
        mine = {"x-treadle-session": "s1", "authorization": "Bearer me"}
        await post(server, api, mine, **fields)
        (pin,) = server.ingress.warmer.pins.values()
        assert pin.prompt.tolist() == server.engine.jobs[0].prompt
        assert pin.until - pin.touched == pytest.approx(3600)
        await post(server, api, mine | {"x-treadle-final": "true"}, **fields)
        assert [one.pinned for one in asked] == [False, True]
        assert server.ingress.warmer.pins == {}


@pytest.mark.parametrize(
    "urgent",
    [
        pytest.param({}, id="unsaid"),
        pytest.param({"tier": 5}, id="tier"),
        pytest.param({"priority": 9}, id="priority"),
    ],
)
async def test_what_is_kept_warm_is_behind_every_turn(
    urgent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "REFRESH", 0.0)
    async with serving() as server:
        server.ingress.keepalive_s = 1000.0  # the touches are ours alone
        mine = {"x-treadle-session": "s1", "x-treadle-cache-ttl": "300"}
        await post(server, "messages", mine, nvext={"agent_hints": urgent})
        server.ingress.warmer.refresh()
        await until(lambda: len(server.engine.jobs) == 2)
        least = {"x-treadle-tier": "-10", "x-treadle-priority": str(-(2**31))}
        await post(server, "messages", least)
        first, warm, last = server.engine.jobs
        assert warm.turn.startswith("warm-")
        assert warm.priority >= last.priority > first.priority


@EACH
async def test_a_breakpoint_without_a_ttl_pins_nothing(api: str) -> None:
    async with serving() as server:
        mine = {"x-treadle-session": "s1"}
        await post(server, api, mine, cache_control={"type": "ephemeral"})
        assert server.ingress.warmer.pins == {}
