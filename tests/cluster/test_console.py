"""The console of a cluster, in a real browser: what passed through its processes is on the page."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from benchmarks.served import Server
from tests.cluster.asks import tools
from tests.cluster.control import Control, until

pytest.importorskip("playwright", reason="playwright is not installed")
pytest.importorskip("mcp", reason="the extra `tools` is not installed")

from playwright.async_api import expect

from tests.browser.looking import Looking, browsing

pytestmark = pytest.mark.ray
SESSION = "console-of-a-cluster"
GATEWAY = {
    "type": "mcp",
    "server_label": "shop",
    "server_url": "http://tools.internal/mcp",
    "require_approval": "never",
    "allowed_tools": ["orders"],
}


def ask(server: Server, path: str, body: Any = None) -> Any:
    headers = {"content-type": "application/json", "x-treadle-session": SESSION}
    headers |= {"authorization": "Bearer alice", "user-agent": "claude-cli/2.1.9 (external, cli)"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url(path), data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def played(server: Server) -> str:
    """A call that the harness runs, and one that runs inside the turn; gives the session's name."""
    words = "Think carefully about what 15 * 23 equals"
    said = {"role": "user", "content": words}
    called = {"max_tokens": 500, "messages": [said], "tools": tools("messages")}
    ask(server, "/v1/messages", {"model": "lab-model"} | called)
    looked = {"input": "Please look at the orders.", "tools": [GATEWAY]}
    done = ask(server, "/v1/responses", {"model": "lab-model"} | looked)["output"]
    assert "mcp_call" in [item["type"] for item in done], done

    def written() -> str:
        rows = ask(server, f"/console/api/sessions?q={SESSION}")["sessions"]
        return next((row["session"] for row in rows if row.get("calls", 0) >= 2), "")

    return until("the session is written down", written)


@pytest.mark.usefixtures("url")
async def test_calls_runs_and_the_fleet_of_a_cluster_are_shown(
    server: Server, control: Control
) -> None:
    session = played(server)
    async with browsing() as browser:
        look = await Looking.begin(browser, server.url("").rstrip("/"), None)
        page = look.page
        await look.open("sessions", ".rows a")
        await expect(page.locator(".rows")).to_contain_text(SESSION)
        await look.open(f"sessions/{session}", ".weave a.turn")
        await look.title("Claude Code 2.1.9")
        await expect(page.locator(".weave")).to_contain_text("calculator")
        await expect(page.locator(".weave")).to_contain_text("orders")
        await look.open("runs", ".rows a")
        run = page.locator(".rows a", has_text="orders").first
        await expect(run).to_contain_text("predicate satisfied")
        await run.click()
        await expect(page.locator("table.data tbody tr")).to_have_count(32)
        await look.open("fleet", ".panel")
        for engine in control.routed():
            await expect(page.locator("main")).to_contain_text(engine)
        await look.end()
