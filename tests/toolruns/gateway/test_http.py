"""The gateway over real HTTP on loopback, with the clients of both eras."""

from __future__ import annotations

import asyncio
import contextlib
import json
from contextlib import asynccontextmanager

import httpx
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.toolruns.gateway.house import (
    ERAS,
    Scripted,
    call,
    eventually,
    house,
    text_of,
    tool,
    view_of,
)
from toolruns.gateway.app import Gateway
from toolruns.signals import Tick

BOTH = pytest.mark.parametrize("era", list(ERAS))


class Site:
    def __init__(self, url, home) -> None:
        self.url, self.home = url, home

    @asynccontextmanager
    async def client(self, era, key="alice"):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=ERAS[era]) as client,
        ):
            yield client


@asynccontextmanager
async def site(path, port, *tools, authenticate=None, hosts=None, **options):
    async with house(path, *tools, **options) as home:
        app = home.gateway
        if authenticate is not None:
            app = Gateway(home.calls, authenticate=authenticate)
        if hosts is not None:
            app = Gateway(home.calls, allowed_hosts=hosts)
        config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", ws="none")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        await eventually(lambda: server.started)
        try:
            yield Site(f"http://127.0.0.1:{port}/mcp", home)
        finally:
            server.should_exit = True
            async with asyncio.timeout(30):
                await serving


@BOTH
async def test_a_call_over_http(tmp_path, free_port, era):
    async with site(tmp_path, free_port) as here, here.client(era) as client:
        result = await call(client, "orders", do="endless", consume_until="count >= 30")
        assert text_of(result).startswith("PARTIAL (predicate_satisfied) after 32 rows")


@BOTH
async def test_handles_of_another_key_are_unknown(tmp_path, free_port, era):
    async with site(tmp_path, free_port) as here:
        async with here.client(era) as alice:
            handle = view_of(await call(alice, "orders", do="end"))["handle"]
            assert not (await call(alice, "stream_rows", handle=handle)).is_error
        async with here.client(era, key="bob") as bob:
            foreign = await call(bob, "stream_rows", handle=handle)
            unknown = await call(
                bob, "stream_rows", handle=handle[:-1] + ("A" if handle[-1] != "A" else "B")
            )
            assert foreign.is_error
            assert text_of(foreign) == text_of(unknown)


async def test_a_refused_key_gets_401(tmp_path, free_port):
    def only_alice(headers):
        return "alice" if headers.get("authorization") == "Bearer alice" else None

    async with (
        site(tmp_path, free_port, authenticate=only_alice) as here,
        httpx.AsyncClient() as http,
    ):
        answer = await http.post(here.url, json={})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        async with here.client("modern") as client:
            assert (await client.list_tools()).tools


async def test_what_is_not_running_says_503(tmp_path):
    async with house(tmp_path) as home:
        transport = httpx.ASGITransport(home.gateway)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            assert (await http.post("/mcp", json={})).status_code == 503


def body_of(era, name, arguments):
    params = {"name": name, "arguments": arguments}
    headers = {"accept": "application/json, text/event-stream", "authorization": "Bearer alice"}
    if era == "modern":
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers |= {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
    else:
        headers |= {"mcp-protocol-version": "2025-06-18"}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers


@BOTH
async def test_a_client_that_drops_the_connection_ends_the_stream(tmp_path, free_port, era):
    async with site(tmp_path, free_port) as here:
        body, headers = body_of(era, "orders", {"do": "stuck"})
        async with httpx.AsyncClient(timeout=60) as http:
            posting = asyncio.create_task(http.post(here.url, json=body, headers=headers))
            await eventually(lambda: Scripted.all and Scripted.all[0].reads)
            posting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await posting
        await eventually(lambda: Scripted.all[0].closed)
        await eventually(lambda: here.home.reason(here.home.handles()[0]))
        expected = "cancelled" if era == "modern" else "client_disconnected"
        assert here.home.reason(here.home.handles()[0]) == expected


@BOTH
async def test_a_client_that_never_comes_back_leaves_nothing_open(tmp_path, free_port, era):
    """A yielded stream whose client is gone ends by itself, within the time it is held."""
    async with site(tmp_path, free_port, tool(yield_after_seconds=0.05)) as here:
        async with here.client(era) as client:
            handle = view_of(await call(client, "orders", do="stuck"))["handle"]
        held = here.home.calls._live[handle]
        held.run.run.leg.budget = here_after(held.budget)
        held.run._mail.put_nowait(Tick())
        await eventually(lambda: here.home.reason(handle))
        assert here.home.reason(handle) == "handle_closed"
        await eventually(lambda: not here.home.calls._live)


def here_after(budget):
    """The same budget, held for no time at all."""
    fields = {name: getattr(budget, name) for name in budget.__struct_fields__}
    return type(budget)(**{**fields, "hold_seconds": 0.0})


async def test_progress_travels_as_events_before_the_result(tmp_path, free_port):
    async with site(tmp_path, free_port) as here:
        body, headers = body_of("modern", "orders", {"do": "endless", "max_rows": 640})
        body["params"]["_meta"]["progressToken"] = "p1"
        async with httpx.AsyncClient(timeout=60) as http:
            answer = await http.post(here.url, json=body, headers=headers)
        lines = [
            line.removeprefix("data: ")
            for line in answer.text.splitlines()
            if line.startswith("data: ")
        ]
        messages = [json.loads(line) for line in lines]
        assert [m.get("method") for m in messages[:-1]] == ["notifications/progress"] * (
            len(messages) - 1
        )
        assert len(messages) > 2
        assert messages[-1]["result"]["content"][0]["text"].startswith("PARTIAL (budget_rows)")


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"{", 400), (b"[]", 400), (b'{"jsonrpc":"2.0"}', 400), (b"x" * 5_000_000, 413)],
    ids=["empty", "half", "batch", "no-method", "large"],
)
async def test_bad_bodies_are_refused_and_the_gateway_lives(tmp_path, free_port, body, status):
    async with site(tmp_path, free_port) as here:
        _, headers = body_of("modern", "orders", {})
        async with httpx.AsyncClient(timeout=60) as http:
            answer = await http.post(
                here.url, content=body, headers={**headers, "content-type": "application/json"}
            )
            assert answer.status_code in {status, 202}
        async with here.client("modern") as client:
            assert (await client.list_tools()).tools
