"""The protocol's own conformance suite against the gateway, as far as its scenarios apply.

Needs Node 22 and the package: `npm install @modelcontextprotocol/conformance node@22` in a folder
that `TREADLE_MCP_CONFORMANCE` names. The suite expects a server that offers everything; what a
gateway of streaming tools does not have stands in `NOT_APPLICABLE`, with the reason.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from tests.toolruns.gateway.house import house
from tests.toolruns.gateway.test_http import site
from toolruns.contract import Cadence, Contract
from toolruns.gateway.app import Gateway
from toolruns.tool import streaming_tool

HOME = Path(os.environ.get("TREADLE_MCP_CONFORMANCE", "/nonexistent"))
SUITE = HOME / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
NODE = HOME / "node_modules/.bin/node"

NO_SAMPLING = "a stateless server cannot ask the client anything back"
NO_PROMPTS = "the gateway offers tools and trajectories, no prompts"
ONE_TEXT = "a streaming tool answers with one text block, the synopsis"
NOT_APPLICABLE = {
    "logging-set-level": "logging is deprecated in 2026-07-28 and not offered",
    "tools-call-with-logging": "logging is deprecated in 2026-07-28 and not offered",
    "completion-complete": "nothing to complete: arguments are data of the sources",
    "tools-call-simple-text": ONE_TEXT,
    "tools-call-image": ONE_TEXT,
    "tools-call-audio": ONE_TEXT,
    "tools-call-embedded-resource": ONE_TEXT,
    "tools-call-mixed-content": ONE_TEXT,
    "tools-call-sampling": NO_SAMPLING,
    "tools-call-elicitation": NO_SAMPLING,
    "elicitation-sep1034-defaults": NO_SAMPLING,
    "elicitation-sep1330-enums": NO_SAMPLING,
    "resources-read-text": "resources are trajectories; the suite reads test:// ones",
    "resources-read-binary": "resources are trajectories; the suite reads test:// ones",
    "resources-templates-read": "resources are trajectories; the suite reads test:// ones",
    "resources-subscribe": "a trajectory's end comes with its call, not by subscription",
    "resources-unsubscribe": "a trajectory's end comes with its call, not by subscription",
    "prompts-list": NO_PROMPTS,
    "prompts-get-simple": NO_PROMPTS,
    "prompts-get-with-args": NO_PROMPTS,
    "prompts-get-embedded-resource": NO_PROMPTS,
    "prompts-get-with-image": NO_PROMPTS,
}
APPLICABLE = {
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "resources-list",
    "dns-rebinding-protection",
}


@streaming_tool(name="test_error_handling")
async def failing():
    """Always fails."""
    if failing:
        raise ValueError
    yield {}


@streaming_tool(
    name="test_tool_with_progress",
    contract=Contract("chunked", synopsis=Cadence(every_chunks=1, every_seconds=0.1)),
)
async def slow():
    """Takes its time."""
    for n in range(400):
        await asyncio.sleep(0.002)
        yield {"n": n}


@pytest.mark.harness
@pytest.mark.skipif(not SUITE.exists(), reason="TREADLE_MCP_CONFORMANCE names no installed suite")
async def test_conformance(tmp_path, free_port):
    async with site(
        tmp_path, free_port, failing, slow, hosts=["127.0.0.1:*", "localhost:*"]
    ) as here:
        process = await asyncio.create_subprocess_exec(
            str(NODE),
            str(SUITE),
            "server",
            "--url",
            here.url,
            "-o",
            str(tmp_path / "results"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(process.communicate(), 100)
    summary = re.findall(
        r"^(.) ([a-z0-9-]+): (\d+) passed, (\d+) failed$", out.decode(), re.MULTILINE
    )
    results = {name: int(failed) == 0 for _, name, _, failed in summary}
    assert set(results) == APPLICABLE | set(NOT_APPLICABLE), "the suite changed: sort its scenarios"
    assert {name for name in APPLICABLE if not results[name]} == set()


async def test_hosts_and_origins_are_bounded(tmp_path):
    async with house(tmp_path) as home:
        gateway = Gateway(home.calls, allowed_hosts=["127.0.0.1:*"])
        assert "http://127.0.0.1:*" in gateway._security.allowed_origins
        assert gateway._security.enable_dns_rebinding_protection
