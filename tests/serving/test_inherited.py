"""What a tool inherits of the session that called it: the model's judgement, and the budget."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from actors.open_calls import OpenCalls
from turns.blocks import ToolCall
from turns.events import Usage
from turns.reply import Reply
from turns.turn import Turn

pytest.importorskip("mcp", reason="the extra `tools` is not installed")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.serving.server import MODEL
from tests.serving.shops import KEY, shop
from tests.toolruns.gateway.house import Scripted, text_of, tool, view_of

SCHEMA = {"type": "object", "properties": {"do": {"type": "string"}}}
HARNESS = {"authorization": f"Bearer {KEY}", "x-treadle-session": "s1"}


def patient():
    """A tool whose budget is not what ends it, on a fast machine or a slow one."""
    return tool(max_seconds=100.0, yield_after_seconds=100.0, max_rows=10**9)


@asynccontextmanager
async def harness(url, key=KEY):
    """A harness's own MCP client."""
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, verify=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def called(here, said, headers=HARNESS, **more):
    """A turn of a harness in which the model calls its tool; the call's id."""
    sent = {
        "model": MODEL,
        "max_tokens": 500,
        "messages": [{"role": "user", "content": said}],
        "tools": [{"name": "mcp__shop__orders", "input_schema": SCHEMA}],
        **more,
    }
    answer = await here.server.http.post("/v1/messages", json=sent, headers=headers)
    return next(b["id"] for b in answer.json()["content"] if b["type"] == "tool_use")


async def run(client, call_id, **arguments):
    async with asyncio.timeout(100):
        return await client.call_tool(
            "orders", {"do": "endless", **arguments}, meta={"claudecode/toolUseId": call_id}
        )


async def test_a_stream_ends_when_the_model_reads_that_it_has_converged(tmp_path, monkeypatch):
    monkeypatch.setattr("toolruns.gateway.rounds.DECIDE_WITHIN", 60.0)
    """The effect of a decision: not at the first synopsis, and long before any budget."""
    async with shop(tmp_path, patient(), decisions="automatic") as here:
        answer = await here.respond("it never ends")
        call = next(item for item in answer.output if item.type == "mcp_call")
        assert call.output.startswith("PARTIAL (model_stopped)")
        assert json.loads(call.output.splitlines()[2])["verdict"] == "converged"
        asked = [job for job in here.server.engine.jobs if job.spec.output.kind == "json_schema"]
        assert len(asked) >= 2, "it was asked before, and said: continue"
        step, behind = (job for job in here.server.engine.jobs if job not in asked)
        made = [*step.prompt, *here.server.engine.output[step.turn]]
        for job in (*asked, behind):
            assert list(job.prompt[: len(made)]) == made
        events = here.home.store.events(here.home.handles()[-1])
        verdicts = [e.data["verdict"] for e in events if e.type == "decision.requested"]
        assert len(verdicts) == len(set(verdicts)), "asked again only when the verdict changed"


async def test_a_model_can_set_a_new_stop_condition_while_the_tool_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("toolruns.gateway.rounds.DECIDE_WITHIN", 60.0)
    async with (
        shop(tmp_path, patient(), decisions="automatic") as here,
        harness(here.url) as client,
    ):
        call_id = await called(here, "it never ends, refine it")
        result = await run(client, call_id)
        assert text_of(result).startswith("PARTIAL (predicate_satisfied)")
        assert view_of(result)["predicate"]["text"] == "count >= 600"


@pytest.mark.parametrize(
    ("when", "key", "more", "asked"),
    [
        pytest.param("off", KEY, {"checkpoint": True}, 0, id="off"),
        pytest.param("on_demand", KEY, {}, 0, id="not demanded"),
        pytest.param("automatic", "bob", {}, 0, id="somebody else's call"),
    ],
)
async def test_nobody_is_asked(tmp_path, when, key, more, asked):
    async with shop(tmp_path, decisions=when) as here, harness(here.url, key) as client:
        call_id = await called(here, "it never ends")
        await run(client, call_id, max_rows=640, **more)
        assert len(here.server.engine.jobs) == 1 + asked


async def test_a_call_gets_what_its_session_has_left(tmp_path):
    """A deadline of the task, shared with the calls that are expected to follow."""
    async with shop(tmp_path) as here, harness(here.url) as client:
        call_id = await called(here, "it never ends", HARNESS | {"x-treadle-deadline-s": "3"})
        result = await run(client, call_id)
        assert text_of(result).startswith("PARTIAL (deadline_inherited)")
        view = view_of(result)
        assert view["budget"]["from"] == "session"
        assert view["elapsed_s"] <= 1.5 + 1.0
        assert all(source.closed for source in Scripted.all)


async def test_a_task_budget_bounds_the_tokens_that_a_call_may_show(tmp_path):
    async with shop(tmp_path) as here, harness(here.url) as client:
        budget = {"type": "tokens", "total": 2000, "remaining": 900}
        call_id = await called(here, "it never ends", output_config={"task_budget": budget})
        result = await run(client, call_id, checkpoint=True)
        assert text_of(result).startswith("PARTIAL (budget_tokens)")


async def test_what_somebody_else_has_left_bounds_nobody(tmp_path):
    async with shop(tmp_path) as here, harness(here.url, "bob") as client:
        call_id = await called(here, "it never ends", HARNESS | {"x-treadle-deadline-s": "3"})
        result = await run(client, call_id, max_rows=64)
        assert view_of(result)["budget"]["from"] != "session"


async def test_a_purse_knows_the_window_and_the_calls_to_come(tmp_path):
    async with shop(tmp_path, model={"context_window": 4000}) as here:
        headers = HARNESS | {"x-treadle-deadline-s": "60"}
        call_id = await called(here, "two at once", headers)
        owner = here.server.outside.decisions._calls._calls[call_id].owner
        purse = await here.server.outside.purses.find(call_id, owner)
        (job,) = here.server.engine.jobs
        made = here.server.engine.output[job.turn]
        assert purse.context == 4000 - len(job.prompt) - len(made)
        assert 0 < purse.deadline <= 60
        assert purse.concurrent == 2
        assert purse.further_calls == 1.0
        assert await here.server.outside.purses.find(call_id, "bob") is None


async def test_as_many_calls_are_expected_as_sessions_make():
    """Sessions of 6 calls on average: a session that made 2 is expected to make 4 more."""
    calls = OpenCalls(100, clock=lambda: 0.0)

    def make(session, count):
        for number in range(count):
            turn = Turn(f"{session}-{number}", "messages", "m", (), session=session)
            reply = Reply((ToolCall(f"{session}{number}", "t", "{}"),), "tool_use", Usage())
            calls.note("alice", turn, reply, 0)

    make("one", 10)
    make("two", 2)
    assert calls.further(await calls.find("two1", "alice")) == 4.0
    assert calls.further(await calls.find("one9", "alice")) == 1.0
    lonely = Turn("x", "messages", "m", ())
    calls.note("alice", lonely, Reply((ToolCall("z", "t", "{}"),), "tool_use", Usage()), 0)
    assert calls.further(await calls.find("z", "alice")) == 0.0
