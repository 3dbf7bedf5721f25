"""What the Responses API accepts, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

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
from turns.turn import OutputFormat, Thinking, ToolChoice

MEMBER = {"type": "function", "name": "read", "parameters": {"type": "object"}}
FILES = {"type": "namespace", "name": "files", "tools": [MEMBER]}


def items(*sent: dict[str, Any], **fields: Any) -> tuple[Message, ...]:
    return apis.decode("responses", input=list(sent), **fields).messages


def test_reasoning_text_and_calls_make_one_assistant_message() -> None:
    read = items(
        {"role": "user", "content": "a"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}], "content": None},
        {"role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"p": '},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": ""},
        {"type": "function_call_output", "call_id": "c1", "output": "bad arguments"},
        {
            "type": "function_call_output",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "x"}],
        },
    )
    assert read == (
        Message("user", (Text("a"),)),
        Message(
            "assistant",
            (
                Reasoning("r"),
                Text("b"),
                ToolCall("c1", "read", '{"p": '),
                Reasoning("", seal="gAAA", redacted=True),
                ToolCall("c2", "read", "{}"),
            ),
        ),
        Message("tool", (ToolResult("c1", (Text("bad arguments"),), name="read"),)),
        Message("tool", (ToolResult("c2", (Text("x"),), name="read"),)),
    )


def test_raw_reasoning_is_better_than_its_summary() -> None:
    item = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    assert items(item)[0].blocks == (Reasoning("long"),)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** B"},
            ToolCall("c", "apply_patch", "*** B", "custom"),
            id="custom",
        ),
        pytest.param(
            {"type": "tool_search_call", "call_id": "c", "arguments": {"query": "x"}},
            ToolCall("c", "tool_search", '{"query": "x"}'),
            id="tool-search",
        ),
        pytest.param(
            {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
            ToolCall("c", "local_shell", '{"command": ["ls"]}'),
            id="local-shell",
        ),
        pytest.param(
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            ToolCall("c", "shell", '{"commands": ["ls"]}'),
            id="shell",
        ),
        pytest.param(
            {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}},
            ToolCall("c", "apply_patch", '{"type": "delete_file"}'),
            id="apply-patch",
        ),
        pytest.param(
            {"type": "web_search_call", "id": "w", "status": "completed"},
            Opaque(
                "web_search_call", {"type": "web_search_call", "id": "w", "status": "completed"}
            ),
            id="web-search",
        ),
        pytest.param(
            {"type": "item_reference", "id": "msg_1"},
            Opaque("item_reference", {"type": "item_reference", "id": "msg_1"}),
            id="reference",
        ),
        pytest.param({"type": "hologram"}, Opaque("hologram", {"type": "hologram"}), id="unknown"),
    ],
)
def test_item_of_history(item: dict[str, Any], expected: Any) -> None:
    read = items({"role": "user", "content": "go"}, item)
    assert read[-1].blocks[-1] == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param("Done", (Text("Done"),), id="string"),
        pytest.param(
            [{"type": "input_image", "image_url": "data:image/png;base64,iVBO"}],
            (Image(media_type="image/png", data="iVBO"),),
            id="image",
        ),
        pytest.param(
            [{"stdout": "hi", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            (Text("hi\nexit 0"),),
            id="shell",
        ),
        pytest.param(
            {"type": "computer_screenshot", "image_url": "http://x/y.png"},
            (Image(url="http://x/y.png"),),
            id="screenshot",
        ),
        pytest.param({"ok": True}, (Text('{"ok": true}'),), id="object"),
        pytest.param(None, (), id="null"),
    ],
)
def test_output_of_a_call(output: Any, expected: tuple[Any, ...]) -> None:
    read = items({"type": "function_call_output", "call_id": "c", "output": output})
    assert read[0].blocks == (ToolResult("c", expected),)


def test_an_mcp_call_brings_its_own_result() -> None:
    item = {"type": "mcp_call", "id": "m1", "name": "read", "arguments": "{}", "error": "no"}
    assert items(item) == (
        Message("assistant", (ToolCall("m1", "read", "{}"),)),
        Message("tool", (ToolResult("m1", (Text("no"),), is_error=True, name="read"),)),
    )


def test_what_stands_alone_never_makes_a_message_that_is_rendered() -> None:
    read = items({"type": "item_reference", "id": "x"}, {"role": "user", "content": "a"})
    assert read == (
        Message(
            "user", (Opaque("item_reference", {"type": "item_reference", "id": "x"}), Text("a"))
        ),
    )


def test_namespaces_are_flattened_and_known_by_the_way_back() -> None:
    turn = apis.decode(
        "responses",
        tools=[{"type": "function", "name": "read"}, FILES, {"type": "web_search"}],
        input=[
            {"type": "function_call", "call_id": "c", "name": "read", "namespace": "files"},
            {"type": "function_call", "call_id": "d", "name": "read"},
        ],
    )
    assert [tool.name for tool in turn.tools] == ["read", "files__read"]
    assert turn.echo["shapes"]["files__read"] == {
        "item": "function_call",
        "name": "read",
        "namespace": "files",
    }
    assert turn.echo["ignored"] == ["tools.2:web_search"]
    names = [block.name for block in turn.messages[0].blocks]
    assert names == ["files__read", "read"]


def test_found_tools_are_shown_where_they_were_found() -> None:
    turn = apis.decode(
        "responses",
        tools=[{"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}],
        input=[
            {"role": "user", "content": "go"},
            {"type": "tool_search_call", "call_id": "c", "arguments": {"query": "files"}},
            {"type": "tool_search_output", "call_id": "c", "tools": [FILES]},
        ],
    )
    assert [(tool.name, tool.deferred) for tool in turn.tools] == [
        ("tool_search", False),
        ("files__read", True),
    ]
    assert turn.messages[-1].blocks == (
        ToolResult("c", (ToolReference("files__read"),), name="tool_search"),
    )


def test_additional_tools_at_the_head_are_ordinary() -> None:
    added = {"type": "additional_tools", "role": "developer", "tools": [FILES]}
    turn = apis.decode("responses", tools=[], input=[added, {"role": "user", "content": "go"}])
    assert [(tool.name, tool.deferred) for tool in turn.tools] == [("files__read", False)]
    assert turn.messages == (Message("user", (Text("go"),)),)


def test_the_default_namespace_leaves_bare_names() -> None:
    plain = {
        "type": "namespace",
        "name": "functions",
        "tools": [MEMBER, {"type": "custom", "name": "exec"}],
    }
    turn = apis.decode("responses", tools=[plain, {"type": "function", "name": "wait"}])
    assert [tool.name for tool in turn.tools] == ["read", "exec", "wait"]
    assert turn.echo["shapes"]["exec"] == {
        "item": "custom_tool_call",
        "name": "exec",
        "namespace": "functions",
    }
    # A plain tool that came first keeps the name; the member falls back on its namespace.
    turn = apis.decode("responses", tools=[{"type": "function", "name": "read"}, plain])
    assert [tool.name for tool in turn.tools] == ["read", "functions__read", "exec"]


def test_a_custom_tool_is_a_function_of_one_string() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/s"}
    custom = {"type": "custom", "name": "patch", "description": "edit", "format": grammar}
    tool = apis.decode("responses", tools=[custom]).tools[0]
    assert (tool.kind, tool.format, tool.description) == ("custom", grammar, "edit")
    assert tool.parameters["required"] == ["input"]
    assert "start: /.+/s" in tool.parameters["properties"]["input"]["description"]


def test_fields_of_a_codex_request() -> None:
    turn = apis.decode(
        "responses",
        instructions="be brief",
        reasoning={"effort": "medium", "summary": "auto"},
        text={
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "n", "schema": {"a": 1}},
        },
        store=False,
        previous_response_id="resp_1",
        prompt_cache_key="key",
        client_metadata={"thread_id": "thread", "turn_id": 7},
        parallel_tool_calls=False,
    )
    assert turn.messages[0] == Message("system", (Text("be brief"),))
    assert turn.thinking == Thinking("on", effort="medium")
    assert turn.output == OutputFormat("json_schema", schema={"a": 1}, name="n")
    assert (turn.store, turn.previous, turn.session) == (False, "resp_1", "thread")
    assert turn.tool_choice == ToolChoice(parallel=False)
    assert turn.echo["response"]["text"]["verbosity"] == "low"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        pytest.param({"input": None}, "input", id="no-input"),
        pytest.param({"input": [{"role": "robot"}]}, "input.0.role", id="role"),
        pytest.param({"input": [5]}, "input.0", id="no-object"),
        pytest.param({"input": [{"type": "function_call"}]}, "input.0.name", id="nameless"),
        pytest.param({"tools": [{"type": "function", "name": 5}]}, "tools.0.name", id="tool"),
        pytest.param({"tool_choice": {"type": "function", "name": "x"}}, "tool_choice", id="who"),
        pytest.param({"text": {"format": {"type": "xml"}}}, "text.format.type", id="format"),
        pytest.param({"max_output_tokens": 0}, "max_output_tokens", id="zero"),
    ],
)
def test_faults_name_their_field(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        apis.decode("responses", **fields)
    assert caught.value.param == param
