"""What the Messages API accepts, and what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocols.anthropic.decode import decode_count
from tests.protocols import apis
from turns.blocks import (
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolReference,
    ToolResult,
)
from turns.errors import InvalidRequestError
from turns.turn import Hints, OutputFormat, Thinking, ToolChoice

TEXT = {"type": "text", "text": "x"}
EPHEMERAL = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def blocks(*content: dict[str, Any], role: str = "user") -> tuple[Any, ...]:
    turn = apis.decode("messages", messages=[{"role": role, "content": list(content)}])
    return turn.messages[0].blocks


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(TEXT | EPHEMERAL, (Text("x"),), id="text-with-cache-control"),
        pytest.param({"type": "text", "text": ""}, (), id="empty-text"),
        pytest.param(
            {"type": "thinking", "thinking": "t", "signature": "s"},
            (Reasoning("t", seal="s"),),
            id="thinking",
        ),
        pytest.param({"type": "thinking", "thinking": "t"}, (Reasoning("t"),), id="unsigned"),
        pytest.param(
            {"type": "thinking", "thinking": "", "signature": "s"},
            (Reasoning("", seal="s"),),
            id="omitted",
        ),
        pytest.param(
            {"type": "redacted_thinking", "data": "AAAA"},
            (Reasoning("", seal="AAAA", redacted=True),),
            id="redacted",
        ),
        pytest.param(
            {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
            (ToolCall("t1", "f", "{}"),),
            id="call",
        ),
        pytest.param(
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": 1}},
            (ToolCall("s1", "web_search", '{"q": 1}'),),
            id="server-call",
        ),
        pytest.param(
            {"type": "tool_result", "tool_use_id": "t1", "content": "boom", "is_error": True},
            (ToolResult("t1", (Text("boom"),), is_error=True),),
            id="error-result",
        ),
        pytest.param(
            {"type": "tool_result", "tool_use_id": "t1"}, (ToolResult("t1"),), id="empty-result"
        ),
        pytest.param(
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [
                    TEXT | EPHEMERAL,
                    {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}},
                    {"type": "tool_reference", "tool_name": "WebFetch"},
                    {"type": "hologram", "depth": 3},
                ],
            },
            (
                ToolResult(
                    "t1", (Text("x"), Image(url="http://x/y.png"), ToolReference("WebFetch"))
                ),
                Opaque("hologram", {"type": "hologram", "depth": 3}),
            ),
            id="mixed-result",
        ),
        pytest.param(
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
            },
            (Image(media_type="image/png", data="iVBO"),),
            id="image",
        ),
        pytest.param(
            {"type": "document", "title": "T", "source": {"type": "text", "data": "body"}},
            (Text("T"), Text("body")),
            id="text-document",
        ),
        pytest.param(
            {"type": "document", "source": {"type": "content", "content": [TEXT]}},
            (Text("x"),),
            id="content-document",
        ),
        pytest.param(
            {"type": "document", "source": {"type": "base64", "data": "JVBE"}},
            (
                Opaque(
                    "document",
                    {"type": "document", "source": {"type": "base64", "data": "JVBE"}},
                ),
            ),
            id="pdf-is-kept",
        ),
        pytest.param(
            {"type": "search_result", "title": "T", "source": "http://s", "content": [TEXT]},
            (Text("T\nhttp://s"), Text("x")),
            id="search-result",
        ),
        pytest.param(
            {"type": "teleport", "to": "Oslo"},
            (Opaque("teleport", {"type": "teleport", "to": "Oslo"}),),
            id="unknown",
        ),
    ],
)
def test_content_block(content: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert blocks(content) == expected


def test_a_calls_input_keeps_its_exact_text() -> None:
    raw = '{"b":  1.0, "n": 12345678901234567890, "é": "\\u00e9"}'
    call = {"type": "tool_use", "id": "t", "name": "f", "input": "INPUT"}
    sent = apis.REQUESTS["messages"] | {"messages": [{"role": "assistant", "content": [call]}]}
    body = json.dumps(sent).replace('"INPUT"', raw)
    turn = apis.APIS["messages"].decode(body.encode(), {}, turn_id="t")
    assert turn.messages[0].blocks == (ToolCall("t", "f", raw),)


def test_a_servers_result_leaves_the_assistant_message() -> None:
    turn = apis.decode(
        "messages",
        messages=[
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "s1",
                        "content": [
                            {
                                "type": "web_search_result",
                                "title": "T",
                                "url": "http://u",
                                "encrypted_content": "zzz",
                            }
                        ],
                    },
                    TEXT,
                ],
            }
        ],
    )
    assert turn.messages == (
        Message("assistant", (ToolCall("s1", "web_search", "{}"),)),
        Message("tool", (ToolResult("s1", (Text("T\nhttp://u"),), name="web_search"),)),
        Message("assistant", (Text("x"),)),
    )


@pytest.mark.parametrize(
    "system", ["be brief", [{"type": "text", "text": "be brief"} | EPHEMERAL]], ids=["text", "list"]
)
def test_system_stands_first_and_inline_system_stays_in_place(system: Any) -> None:
    say = [{"role": "user", "content": "a"}, {"role": "system", "content": [TEXT]}]
    turn = apis.decode("messages", system=system, messages=say)
    assert [message.role for message in turn.messages] == ["system", "user", "system"]
    assert turn.messages[0].blocks == (Text("be brief"),)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        pytest.param({"type": "auto"}, ToolChoice(), id="auto"),
        pytest.param({"type": "any"}, ToolChoice("required"), id="any"),
        pytest.param({"type": "tool", "name": "f"}, ToolChoice("named", name="f"), id="tool"),
        pytest.param({"type": "none"}, ToolChoice("none"), id="none"),
        pytest.param(
            {"type": "auto", "disable_parallel_tool_use": True},
            ToolChoice(parallel=False),
            id="one-at-most",
        ),
    ],
)
def test_tool_choice(choice: dict[str, Any], expected: ToolChoice) -> None:
    assert apis.decode("messages", tool_choice=choice).tool_choice == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, Thinking(), id="absent"),
        pytest.param({"thinking": {"type": "disabled"}}, Thinking("off"), id="off"),
        pytest.param(
            {"thinking": {"type": "enabled", "budget_tokens": 64}},
            Thinking("on", budget=64),
            id="budget",
        ),
        pytest.param(
            {
                "thinking": {"type": "adaptive", "display": "updates"},
                "output_config": {"effort": "high"},
            },
            Thinking("on", effort="high"),
            id="claude-code",
        ),
        pytest.param(
            {"thinking": {"type": "adaptive", "display": "omitted"}},
            Thinking("on", show=False),
            id="omitted",
        ),
    ],
)
def test_thinking(fields: dict[str, Any], expected: Thinking) -> None:
    assert apis.decode("messages", **fields).thinking == expected


def test_tools_of_every_kind() -> None:
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    declared = [
        {"name": "a", "input_schema": {"type": "object"}, "eager_input_streaming": True}
        | EPHEMERAL,
        {"name": "b", "input_schema": {}, "defer_loading": True, "strict": True},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ]
    turn = apis.decode("messages", tools=declared)
    assert [(tool.name, tool.deferred) for tool in turn.tools] == [
        ("a", False),
        ("b", True),
        ("bash", False),
    ]
    assert "command" in turn.tools[2].parameters["properties"]
    assert turn.echo["ignored"] == ["tools.3:web_search_20250305"]
    # A server that searches is not there, so nothing may stay hidden behind it.
    searched = apis.decode("messages", tools=[*declared, search])
    assert [tool.deferred for tool in searched.tools] == [False, False, False]


def test_unknown_fields_are_named_and_harmless() -> None:
    turn = apis.decode(
        "messages",
        safeguards=[{"type": "dangerous_tool_use"}],
        container=None,
        service_tier="auto",
        metadata={"user_id": json.dumps({"session_id": "s-1", "device_id": "d"})},
        nvext={"agent_hints": {"priority": 3, "osl": "200", "speculative_prefill": True, "x": 1}},
    )
    assert turn.session == "s-1"
    assert turn.hints == Hints(priority=3, osl=200, speculative_prefill=True)
    assert turn.echo["ignored"] == [
        "container",
        "safeguards",
        "agent_hints.x",
    ]


def test_context_edits_are_kept_as_received() -> None:
    edits = [{"type": "clear_thinking_20251015", "keep": "all"}]
    assert apis.decode("messages", context_management={"edits": edits}).edits == tuple(edits)
    for odd in (None, "all", {"edits": None}, {"edits": ["all"]}, []):
        assert apis.decode("messages", context_management=odd).edits == ()


def test_output_format() -> None:
    schema = {"type": "object"}
    config = {"format": {"type": "json_schema", "schema": schema}}
    expected = OutputFormat("json_schema", schema=schema, strict=True)
    assert apis.decode("messages", output_config=config).output == expected


def test_counting_needs_no_max_tokens() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
    turn = decode_count(json.dumps(body).encode(), {}, turn_id="t")
    assert turn.messages == (Message("user", (Text("go"),)),)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        pytest.param({"max_tokens": None}, "max_tokens", id="no-max-tokens"),
        pytest.param({"max_tokens": 0}, "max_tokens", id="zero-max-tokens"),
        pytest.param({"messages": []}, "messages", id="no-messages"),
        pytest.param({"messages": [{"role": "robot"}]}, "messages.0.role", id="role"),
        pytest.param({"messages": [{"role": 5}]}, "messages.0.role", id="role-type"),
        pytest.param(
            {"messages": [{"role": "user", "content": [TEXT, {"type": "text", "text": 5}]}]},
            "messages.0.content.1.text",
            id="text-type",
        ),
        pytest.param(
            {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
            "messages.0.content.0.tool_use_id",
            id="result-of-nothing",
        ),
        pytest.param({"tool_choice": {"type": "tool"}}, "tool_choice.name", id="unnamed-choice"),
        pytest.param({"temperature": 7}, "temperature", id="temperature"),
    ],
)
def test_faults_name_their_field(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        apis.decode("messages", **fields)
    assert caught.value.param == param
    assert caught.value.message.startswith(f"{param}: ")


RESULT = {"type": "tool_result", "tool_use_id": "t1"}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        pytest.param(TEXT | EPHEMERAL, 3600, id="block"),
        pytest.param(RESULT | {"content": "x"} | EPHEMERAL, 3600, id="result"),
        pytest.param(RESULT | {"content": [TEXT, TEXT | EPHEMERAL]}, 3600, id="inside-a-result"),
        pytest.param(RESULT | {"content": [TEXT]}, 0, id="none"),
        pytest.param(
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"content": [EPHEMERAL]}},
            0,
            id="what-only-looks-like-one",
        ),
    ],
)
def test_a_ttl_counts_on_every_block_that_may_have_one(
    block: dict[str, Any], expected: int
) -> None:
    turn = apis.decode("messages", messages=[{"role": "user", "content": [block]}])
    assert turn.hints.retain_s == expected


def test_a_bad_ttl_of_a_block_is_named() -> None:
    block = RESULT | {"content": [TEXT | {"cache_control": {"type": "ephemeral", "ttl": "2d"}}]}
    turn = apis.decode("messages", messages=[{"role": "user", "content": [block]}])
    assert turn.hints.retain_s == 0
    assert turn.echo["ignored"] == ["cache_control.ttl"]
