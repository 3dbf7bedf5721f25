"""The gateway behind the cluster's own front door: an official MCP client, both eras."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager

import httpx
import httpx2
import pytest

from tests.cluster.conftest import ROWS
from tests.cluster.control import until

mcp = pytest.importorskip("mcp", reason="the extra `tools` is not installed")

from mcp.client.streamable_http import streamable_http_client  # noqa: E402 - after the skip

from tests.toolruns.gateway.house import ERAS, call, text_of, view_of  # noqa: E402
from tests.toolruns.gateway.test_http import body_of  # noqa: E402

pytestmark = pytest.mark.ray
BOTH = pytest.mark.parametrize("era", list(ERAS))


@asynccontextmanager
async def client_of(url, era, key="alice"):
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        mcp.Client(streamable_http_client(url, http_client=http), mode=ERAS[era]) as client,
    ):
        yield client


@BOTH
async def test_lists_its_tools_with_their_contract(url, era):
    async with client_of(url, era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"orders", "heartbeat", "stream_rows", "stream_continue"} <= set(tools)
        assert "consume_until" in tools["orders"].input_schema["properties"]
        assert tools["heartbeat"].meta["dev.treadle/streaming"]["mode"] == "unbounded"


@BOTH
async def test_a_stopped_stream_is_partial_and_its_rows_are_read_by_handle(url, era):
    async with client_of(url, era) as client:
        stopped = await call(
            client, "orders", consume_until="count >= 30 AND distinct_user_ids >= 10"
        )
        assert text_of(stopped).startswith("PARTIAL (predicate_satisfied) after 32 rows")
        handle = view_of(stopped)["handle"]
        late = await call(client, "stream_rows", handle=handle, where="status = 'late'")
        assert [n for n in (3, 13, 23) if f'"id":{n},' not in text_of(late)] == []
        counted = await call(
            client, "stream_query", handle=handle, sql="SELECT count(*) AS n FROM rows"
        )
        assert '"n":32' in text_of(counted)
        assert not (await call(client, "stream_close", handle=handle)).is_error
        assert (await call(client, "stream_rows", handle=handle)).is_error


@BOTH
async def test_what_is_read_to_its_end_is_complete(url, era):
    async with client_of(url, era) as client:
        assert text_of(await call(client, "orders")).startswith(f"COMPLETE: {ROWS:,} rows")


async def test_handles_of_another_key_are_unknown(url):
    async with client_of(url, "modern") as alice, client_of(url, "modern", "bob") as bob:
        handle = view_of(await call(alice, "orders", max_rows=32))["handle"]
        assert (await call(bob, "stream_rows", handle=handle)).is_error
        assert not (await call(alice, "stream_rows", handle=handle)).is_error


@BOTH
async def test_a_client_that_leaves_leaves_nothing_open_beyond_the_budget(url, era, driver):
    """HAProxy sees most clients go at once and some only as it next writes: the budget is the bound."""

    def streams():
        return driver.ask("ask", app="tools", deployment="tools", method="probe")["streams"]

    await asyncio.to_thread(until, "nothing runs", lambda: streams() == 0)
    body, headers = body_of(era, "heartbeat", {})
    async with httpx.AsyncClient(timeout=60) as http:
        posting = asyncio.create_task(http.post(url, json=body, headers=headers))
        await asyncio.to_thread(until, "the stream runs", lambda: streams() == 1)
        posting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await posting
    await asyncio.to_thread(until, "the stream has ended", lambda: streams() == 0)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        pytest.param("alice", "model_stopped", id="its owner"),
        pytest.param("bob", "budget_wall_clock", id="somebody else"),
    ],
)
async def test_the_model_that_called_is_asked_while_the_tool_runs(url, server, key, reason):
    """By the id that the ingress minted, as Claude Code hands it on; another's call asks nobody."""
    turn = {
        "model": "lab-model",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "Please listen to the heartbeat."}],
        "tools": [{"name": "heartbeat", "input_schema": {"type": "object"}}],
    }
    async with httpx.AsyncClient(timeout=60) as http:
        alice = {"authorization": "Bearer alice"}
        answer = await http.post(server.url("/v1/messages"), json=turn, headers=alice)
        (call_id,) = [one["id"] for one in answer.json()["content"] if one["type"] == "tool_use"]
        body, headers = body_of("modern", "heartbeat", {"max_seconds": 8})
        body["params"]["_meta"]["claudecode/toolUseId"] = call_id
        headers |= {"authorization": f"Bearer {key}"}
        result = (await http.post(url, json=body, headers=headers)).json()["result"]
    assert result["content"][0]["text"].startswith(f"PARTIAL ({reason}) after 0 rows")


async def test_a_call_gets_no_more_time_than_its_session_has(url, server):
    """The gateway asks the ingress, by the id that the model's call got there."""
    turn = {
        "model": "lab-model",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "Please listen to the heartbeat."}],
        "tools": [{"name": "heartbeat", "input_schema": {"type": "object"}}],
    }
    key = {"authorization": "Bearer carol"}
    told = key | {"x-treadle-session": "s1", "x-treadle-deadline-s": "4"}
    async with httpx.AsyncClient(timeout=60) as http:
        answer = await http.post(server.url("/v1/messages"), json=turn, headers=told)
        (call_id,) = [one["id"] for one in answer.json()["content"] if one["type"] == "tool_use"]
        body, headers = body_of("modern", "heartbeat", {})
        body["params"]["_meta"]["claudecode/toolUseId"] = call_id
        result = (await http.post(url, json=body, headers=headers | key)).json()["result"]
    text = result["content"][0]["text"]
    # Decisions are automatic here, and this model says stop as soon as it is asked.
    assert text.startswith(("PARTIAL (deadline_inherited)", "PARTIAL (model_stopped)"))
    assert result["_meta"]["dev.treadle/trajectory"]["budget"]["from"] == "session"


async def test_a_request_that_names_the_gateway_runs_its_tools_inside_the_turn(url, server):
    """From one replica's ingress through the front door to the gateway, and back into the turn."""
    tool = {
        "type": "mcp",
        "server_label": "shop",
        "server_url": "http://tools.internal/mcp",
        "require_approval": "never",
        "allowed_tools": ["orders"],
    }
    asked = {"model": "lab-model", "input": "Please look at the orders.", "tools": [tool]}
    async with httpx.AsyncClient(timeout=60) as http:
        headers = {"authorization": "Bearer alice"}
        answer = await http.post(server.url("/v1/responses"), json=asked, headers=headers)
        output = [item for item in answer.json()["output"] if item["type"] != "reasoning"]
        assert [item["type"] for item in output] == ["mcp_list_tools", "mcp_call", "message"]
        stopped = "PARTIAL (predicate_satisfied) after 32 rows"
        assert output[1]["output"].startswith(stopped)
        assert stopped in output[2]["content"][0]["text"]
        tool["server_url"] = "http://127.0.0.1:6379/"
        refused = await http.post(server.url("/v1/responses"), json=asked, headers=headers)
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "tools.0"
    async with client_of(url, "modern") as client:
        handle = output[1]["output"].split("handle ")[1].split()[0]
        assert not (await call(client, "stream_rows", handle=handle)).is_error


def test_models_are_served_beside_it(server):
    assert server.status("/v1/models") == 200
