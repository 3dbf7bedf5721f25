"""What the Chat Completions API accepts, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols import apis
from turns.blocks import Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from turns.errors import InvalidRequestError
from turns.turn import OutputFormat, Thinking, ToolChoice

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.0}'}}
CALLED = ToolCall("c1", "f", '{"a": 1.0}')


def messages(*sent: dict[str, Any]) -> tuple[Message, ...]:
    return apis.decode("chat", messages=list(sent)).messages


@pytest.mark.parametrize(
    "content",
    [{}, {"content": None}, {"content": ""}, {"content": []}],
    ids=["absent", "null", "empty", "no-parts"],
)
def test_absent_null_and_empty_content_are_the_same(content: dict[str, Any]) -> None:
    sent = {"role": "assistant", "tool_calls": [CALL]} | content
    assert messages(sent) == (Message("assistant", (CALLED,)),)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_comes_under_either_name_and_first(field: str) -> None:
    sent = {"role": "assistant", "content": "t", field: "r", "tool_calls": [CALL]}
    assert messages(sent)[0].blocks == (Reasoning("r"), Text("t"), CALLED)


def test_reasoning_segments_interleave_with_calls() -> None:
    second = CALL | {"id": "c2"}
    sent = {"role": "assistant", "reasoning": ["a", "b", "c"], "tool_calls": [CALL, second]}
    assert messages(sent)[0].blocks == (
        Reasoning("a"),
        CALLED,
        Reasoning("b"),
        ToolCall("c2", "f", '{"a": 1.0}'),
        Reasoning("c"),
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"reasoning_details": [{"type": "reasoning.text", "text": "a", "signature": "s"}]},
            (Reasoning("a", seal="s"),),
            id="sealed-text",
        ),
        pytest.param(
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "short"}]},
            (Reasoning("short"),),
            id="summary",
        ),
        pytest.param(
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]},
            (Reasoning("", seal="d", redacted=True),),
            id="encrypted",
        ),
        pytest.param(
            {
                "reasoning": "a",
                "reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}],
            },
            (Reasoning("a", seal="d"),),
            id="text-and-its-seal-apart",
        ),
        pytest.param(
            {
                "reasoning": "abc",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "a", "index": 0},
                    {"type": "reasoning.text", "text": "b", "index": 0, "signature": "s"},
                    {"type": "reasoning.text", "text": "c", "index": 1},
                    {"type": "reasoning.hologram"},
                ],
            },
            (Reasoning("ab", seal="s"), Reasoning("c")),
            id="pieces-of-a-stream",
        ),
    ],
)
def test_reasoning_details(fields: dict[str, Any], expected: tuple[Any, ...]) -> None:
    (read,) = messages({"role": "assistant", "content": None, **fields})
    assert read.blocks == expected


def test_a_result_knows_its_tool() -> None:
    parts = [{"type": "text", "text": "rain"}]
    result = {"role": "tool", "tool_call_id": "c1", "content": parts}
    read = messages({"role": "assistant", "tool_calls": [CALL]}, result)
    assert read[1] == Message("tool", (ToolResult("c1", (Text("rain"),), name="f"),))


def test_the_old_functions_api() -> None:
    old = {"name": "f", "arguments": "{}"}
    turn = apis.decode(
        "chat",
        tools=None,
        functions=[{"name": "f", "parameters": {"type": "object"}}],
        function_call={"name": "f"},
        messages=[
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "function_call": old},
            {"role": "function", "name": "f", "content": "rain"},
        ],
    )
    assert turn.tools[0].name == "f"
    assert turn.tool_choice == ToolChoice("named", name="f", parallel=False)
    call, result = turn.messages[1].blocks[0], turn.messages[2].blocks[0]
    assert isinstance(call, ToolCall)
    assert result == ToolResult(call.id, (Text("rain"),), name="f")


def test_parts_of_content() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "http://x/y.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklG"}},
    ]
    assert messages({"role": "user", "content": parts})[0].blocks == (
        Text("see"),
        Image(media_type="image/png", data="iVBO"),
        Image(url="http://x/y.png"),
        Opaque("input_audio", parts[3]),
    )


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice()),
        ("required", ToolChoice("required")),
        ("none", ToolChoice("none")),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice("named", name="f")),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}},
            ToolChoice("required"),
        ),
    ],
    ids=["auto", "required", "none", "named", "allowed"],
)
def test_tool_choice(choice: Any, expected: ToolChoice) -> None:
    assert apis.decode("chat", tool_choice=choice).tool_choice == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, Thinking(), id="absent"),
        pytest.param({"reasoning_effort": "low"}, Thinking("on", effort="low"), id="effort"),
        pytest.param({"reasoning_effort": "none"}, Thinking("off"), id="effort-none"),
        pytest.param({"thinking": {"type": "disabled"}}, Thinking("off"), id="deepseek-off"),
        pytest.param({"thinking": False}, Thinking("off"), id="bool-off"),
        pytest.param({"enable_thinking": False}, Thinking("off"), id="qwen-off"),
        pytest.param(
            {"enable_thinking": True, "thinking_budget": 9}, Thinking("on", budget=9), id="qwen"
        ),
        pytest.param(
            {"reasoning": {"effort": "high", "exclude": True}},
            Thinking("on", effort="high", show=False),
            id="openrouter",
        ),
    ],
)
def test_thinking(fields: dict[str, Any], expected: Thinking) -> None:
    assert apis.decode("chat", **fields).thinking == expected


def test_sampling_and_output() -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"a": 1}}}
    turn = apis.decode(
        "chat", max_tokens=9, max_completion_tokens=5, stop="END", top_k=3, response_format=shape
    )
    assert (turn.sampling.max_tokens, turn.sampling.stop, turn.sampling.top_k) == (5, ("END",), 3)
    assert turn.output == OutputFormat("json_schema", schema={"a": 1}, name="n")


def test_unknown_fields_are_named() -> None:
    turn = apis.decode("chat", prediction={}, logit_bias={}, tools=[{"type": "web_search"}])
    assert turn.echo["ignored"] == ["logit_bias", "prediction", "tools.0:web_search"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        pytest.param({"messages": []}, "messages", id="no-messages"),
        pytest.param({"messages": [{"role": "robot"}]}, "messages.0.role", id="role"),
        pytest.param({"n": 17}, "n", id="many-choices"),
        pytest.param({"tool_choice": "maybe"}, "tool_choice", id="choice"),
        pytest.param({"tool_choice": {"type": "function"}}, "tool_choice.function.name", id="who"),
        pytest.param({"response_format": {"type": "xml"}}, "response_format", id="format"),
        pytest.param(
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]},
            "messages.0.tool_calls.0.function",
            id="call-of-nothing",
        ),
    ],
)
def test_faults_name_their_field(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        apis.decode("chat", **fields)
    assert caught.value.param == param
