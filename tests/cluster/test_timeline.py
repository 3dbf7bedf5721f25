"""The seed example: think, then call the calculator, then stop; and the script that shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.served import ROOT, Server
from examples import timeline
from tests.cluster import wire
from tests.cluster.asks import MODEL
from tests.protocols.apis import parse, problems

pytestmark = pytest.mark.ray


def seed(server: Server, **fields: Any) -> bytes:
    exchange = wire.post(server, "messages", timeline.body(MODEL, timeline.WORDS) | fields)
    assert exchange.status == 200
    return exchange.whole()


def test_seed_example_thinks_then_calls_then_stops(server: Server) -> None:
    raw = seed(server)
    assert problems("messages", raw) == []
    events = [event for _, event in parse(raw)]
    deltas = [e["delta"]["type"] for e in events if e["type"] == "content_block_delta"]
    thinking, calling = deltas.count("thinking_delta"), deltas.count("input_json_delta")
    assert thinking > 5
    assert calling > 1, "the arguments came in one piece: they did not stream"
    assert deltas == [
        *["thinking_delta"] * thinking,
        "signature_delta",
        *["input_json_delta"] * calling,
    ]
    blocks = [e["content_block"]["type"] for e in events if e["type"] == "content_block_start"]
    assert blocks == ["thinking", "tool_use"]
    assert events[0]["message"]["usage"]["input_tokens"] > 100
    assert [e["type"] for e in events[-2:]] == ["message_delta", "message_stop"]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_seed_example_is_the_same_when_it_is_not_streamed(server: Server) -> None:
    answer = json.loads(seed(server, stream=False))
    thinking, call = answer["content"]
    assert "345" in thinking["thinking"]
    assert thinking["signature"]
    assert (call["type"], call["name"]) == ("tool_use", "calculator")
    assert call["input"] == {"expression": "15 * 23"}
    assert answer["stop_reason"] == "tool_use"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "timeline.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_script_shows_the_timeline(server: Server) -> None:
    shown = run(server.url(""))
    assert shown.returncode == 0, shown.stderr
    lines = [line.split(" ms  ", 1)[1] for line in shown.stdout.splitlines() if " ms  " in line]
    kinds = [line[:17].rstrip() for line in lines]
    thinking, arguments = kinds.count("  thinking"), kinds.count("  arguments")
    assert kinds == [
        "start",
        "thinking begins",
        *["  thinking"] * thinking,
        "  signature",
        "block ends",
        "tool call begins",
        *["  arguments"] * arguments,
        "block ends",
        "stop",
    ]
    assert thinking > 5
    assert arguments > 1
    assert lines[-1].split()[1] == "tool_use,"


def test_script_says_what_to_do_where_nothing_answers() -> None:
    shown = run("http://127.0.0.1:1", MODEL)
    assert shown.returncode == 1
    assert "./run scripted" in shown.stderr


def test_script_shows_what_the_server_refuses(server: Server) -> None:
    shown = run(server.url(""), "no-such-model")
    assert shown.returncode == 1
    assert shown.stderr.startswith("404: ")
