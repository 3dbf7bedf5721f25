"""Every request that real harnesses were seen to send decodes, and nothing of it is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from protocols.anthropic.decode import decode_count
from protocols.registry import APIS
from tests.protocols import apis
from turns.blocks import Opaque, ToolCall, ToolResult
from turns.turn import Turn

PATHS = {protocol.path: protocol for protocol in APIS.values()}
# Fields that say nothing to the model, and are not reported one by one.
SILENT = {"cache_control", "signature", "encrypted_content", "id", "status", "phase"}


def requests() -> list[Any]:
    found = []
    for path in sorted(apis.FIXTURES.glob("*.json")):
        request = json.loads(path.read_text()).get("request") or {}
        if isinstance(request.get("body"), dict):
            found.append(pytest.param(request, id=path.stem))
    if not found:
        absent = pytest.mark.skip(reason=f"no fixtures in {apis.FIXTURES}; set TREADLE_FIXTURES")
        return [pytest.param({}, marks=absent, id="absent")]
    return found


def decoded(request: dict[str, Any]) -> Turn:
    body = json.dumps(request["body"]).encode()
    headers = {name.lower(): value for name, value in request.get("headers") or ()}
    if request["path"].endswith("/count_tokens"):
        return decode_count(body, headers, turn_id="turn_1")
    return PATHS[request["path"]].decode(body, headers, turn_id="turn_1")


@pytest.mark.parametrize("request_", requests())
def test_every_word_of_the_conversation_is_in_the_turn(request_: dict[str, Any]) -> None:
    turn = decoded(request_)
    kept = json.dumps(msgspec.to_builtins(turn.messages), ensure_ascii=False)
    tools = json.dumps(msgspec.to_builtins(turn.tools), ensure_ascii=False)
    shapes = json.dumps(turn.echo.get("shapes"))
    body = request_["body"]
    for text in texts([body.get(name) for name in ("system", "instructions", "messages", "input")]):
        quoted = json.dumps(text, ensure_ascii=False)[1:-1]
        # Arguments are kept as JSON text, so their strings stand there quoted once more.
        again = json.dumps(quoted, ensure_ascii=False)[1:-1]
        assert quoted in kept or again in kept or quoted in tools or quoted in shapes
    for tool in body.get("tools") or ():
        for text in texts(tool.get("function", tool)):
            in_turn = json.dumps(text, ensure_ascii=False)[1:-1] in tools
            assert in_turn or f":{tool.get('type')}" in "".join(turn.echo["ignored"])


def texts(value: Any, key: str = "") -> list[str]:
    """The strings of a request that a model could read; types, roles and seals are none."""
    if isinstance(value, str):
        return (
            [value]
            if key not in SILENT | {"type", "role", "call_id", "tool_call_id", "execution"}
            else []
        )
    if isinstance(value, list):
        return [text for item in value for text in texts(item, key)]
    if isinstance(value, dict):
        skipped = SILENT | {
            "internal_chat_message_metadata_passthrough",
            "parameters",
            "input_schema",
        }
        skipped |= {"tool_use_id", "namespace"}
        return [
            text
            for name, item in value.items()
            if name not in skipped
            for text in texts(item, name)
        ]
    return []


@pytest.mark.parametrize("request_", requests())
def test_every_result_answers_a_call_and_knows_its_tool(request_: dict[str, Any]) -> None:
    turn = decoded(request_)
    blocks = [block for message in turn.messages for block in message.blocks]
    calls = {block.id: block.name for block in blocks if isinstance(block, ToolCall)}
    for block in blocks:
        if isinstance(block, ToolResult) and not turn.previous:
            assert calls[block.call_id] == block.name


@pytest.mark.parametrize("request_", requests())
def test_what_is_not_honoured_is_reported(request_: dict[str, Any]) -> None:
    turn = decoded(request_)
    known = {"context_management", "safeguards", "web_search", "image_generation"}
    assert {name.split(":")[-1] for name in turn.echo["ignored"]} <= known
    hidden = [b for message in turn.messages for b in message.blocks if isinstance(b, Opaque)]
    assert not hidden


@pytest.mark.parametrize("request_", requests())
def test_a_turn_travels(request_: dict[str, Any]) -> None:
    turn = decoded(request_)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(turn), type=Turn) == turn


def test_tool_references_and_deferred_tools_of_claude_code() -> None:
    path = Path(apis.FIXTURES, "claude-anthropic-toolsearch-turn2.json")
    if not path.exists():
        pytest.skip(f"no fixture at {path}; set TREADLE_FIXTURES")
    turn = decoded(json.loads(path.read_text())["request"])
    deferred = sorted(tool.name for tool in turn.tools if tool.deferred)
    assert deferred == ["DeferredToolPlaceholder", "TaskStop", "WebFetch"]
    result = turn.messages[-1].blocks[0]
    assert isinstance(result, ToolResult)
    assert [part.name for part in result.content] == ["WebFetch", "TaskStop"]
