"""A gateway of streaming tools beside the server, and the ways to name it in a request."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anthropic
import httpx2
import openai

from actors.reception import owner
from tests.serving.server import MODEL, Server, listening, serving, settings
from tests.toolruns.gateway.house import House, house
from toolruns.decisions import Pacing
from toolruns.gateway.app import Gateway
from toolruns.gateway.calls import Settings

KEY = "alice"
SCENARIO = {"scenario": "tests/serving/server_tools.yaml"}


class Shop(NamedTuple):
    """The server, the gateway behind it, and an SDK of each API."""

    server: Server
    home: House
    url: str
    anthropic: anthropic.AsyncAnthropic
    openai: openai.AsyncOpenAI

    def tool(self, **more: Any) -> dict[str, Any]:
        """The gateway as a tool of a Responses request."""
        named = {"type": "mcp", "server_label": "shop", "server_url": self.url}
        return named | {"require_approval": "never"} | more

    async def respond(self, said: Any, *tools: Any, **more: Any) -> Any:
        tools = list(tools) or [self.tool()]
        return await self.openai.responses.create(model=MODEL, input=said, tools=tools, **more)

    def message(self, said: str, **more: Any) -> dict[str, Any]:
        """A Messages request that names the gateway."""
        return {
            "model": MODEL,
            "max_tokens": 4000,
            "messages": [{"role": "user", "content": said}],
            "mcp_servers": [{"type": "url", "name": "shop", "url": self.url}],
            "tools": [{"type": "mcp_toolset", "mcp_server_name": "shop"}],
            "betas": ["mcp-client-2025-11-20"],
        } | more


@asynccontextmanager
async def shop(path, *tools, allowed=True, own=True, decisions="off", spans=None, **changes):
    """The gateway asks the server's models for `decisions`, and what sessions have left; `spans` are
    told of its runs.
    """
    serves: list[Server] = []

    async def decide(question):
        told = (question.call_id, question.principal, question.text, question.schema)
        return (await serves[0].outside.decisions.decide(*told)).text

    async def purse_of(call_id, principal):
        return await serves[0].outside.purses.find(call_id, principal)

    asks = Settings(decisions, Pacing(0.05, 0.0, 30), timeouts={".": 600.0})
    asking = {"settings": asks, "decide": decide, "purse_of": purse_of}
    async with house(path, *tools, **asking, spans=spans) as home:
        gateway = Gateway(home.calls, authenticate=lambda headers: owner(headers) or "anonymous")
        async with gateway.running(), listening(gateway) as root:
            url = f"{root}/mcp"
            rules = changes.pop("tool_servers", {})
            if allowed:
                rules = {"allow": [{"url": url, "own": own}]} | rules
            asked = {"ingress": {"open_calls": 8}} | changes
            chosen = settings(options=SCENARIO, tool_servers=rules, **asked)
            async with serving(chosen) as server, httpx2.AsyncClient(verify=False) as http:
                serves.append(server)
                yield Shop(
                    server,
                    home,
                    url,
                    anthropic.AsyncAnthropic(
                        api_key=None,
                        auth_token=KEY,
                        base_url=server.url,
                        http_client=http,
                        max_retries=0,
                    ),
                    openai.AsyncOpenAI(
                        api_key=KEY, base_url=f"{server.url}/v1", http_client=http, max_retries=0
                    ),
                )
