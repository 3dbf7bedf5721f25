"""What requests say of servers whose tools we run: read from each API, and chosen from lists."""

from __future__ import annotations

import json

import pytest

from protocols import tool_servers
from protocols.anthropic.api import Messages
from protocols.responses.api import Responses
from turns.blocks import Message, Text, ToolCall, ToolResult
from turns.errors import InvalidRequestError
from turns.servers import ToolServer

LISTING = (
    {"name": "read", "input_schema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "write", "description": "Writes.", "input_schema": {"type": "object"}},
    {"name": "", "input_schema": {}},
)
URL = "https://shop.example/mcp"


def responses(tool: dict, items=(), **more):
    named = {"type": "mcp", "server_label": "shop", "server_url": URL} | tool
    body = {"model": "m", "input": [{"role": "user", "content": "x"}, *items], "tools": [named]}
    return Responses().decode(json.dumps(body | more).encode(), {}, turn_id="t")


def messages(server: dict, *toolsets: dict):
    named = {"type": "url", "name": "shop", "url": URL} | server
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "x"}],
        "mcp_servers": [named],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "shop"} | one for one in toolsets],
    }
    return Messages().decode(json.dumps(body).encode(), {}, turn_id="t")


def offered(server: ToolServer) -> dict[str, bool]:
    """The tools that are shown, and whether each is asked about."""
    tools = tool_servers.offered(server, LISTING)
    return {tool.served.name: tool.served.ask for tool in tools if tool.served}


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        pytest.param({}, {"read": True, "write": True}, id="asked unless said otherwise"),
        pytest.param({"require_approval": "always"}, {"read": True, "write": True}, id="always"),
        pytest.param({"require_approval": "never"}, {"read": False, "write": False}, id="never"),
        pytest.param(
            {"require_approval": {"never": {"tool_names": ["read"]}}},
            {"read": False, "write": True},
            id="some never",
        ),
        pytest.param(
            {"require_approval": {"never": {"read_only": True}}},
            {"read": False, "write": True},
            id="readers never",
        ),
        pytest.param(
            {"require_approval": {"always": {"tool_names": ["write"]}}},
            {"read": False, "write": True},
            id="some always",
        ),
        pytest.param({"allowed_tools": ["write"]}, {"write": True}, id="allowed by name"),
        pytest.param({"allowed_tools": {"read_only": True}}, {"read": True}, id="allowed readers"),
        pytest.param({"allowed_tools": []}, {}, id="none allowed"),
    ],
)
def test_responses_choose_tools_and_consent(tool, expected):
    (server,) = responses(tool).servers
    assert offered(server) == expected


@pytest.mark.parametrize(
    ("server", "toolsets", "expected"),
    [
        pytest.param({}, [], ["read", "write"], id="no toolset"),
        pytest.param({}, [{}], ["read", "write"], id="a toolset"),
        pytest.param({}, [{"configs": {"write": {"enabled": False}}}], ["read"], id="all but one"),
        pytest.param(
            {},
            [{"default_config": {"enabled": False}, "configs": {"write": {"enabled": True}}}],
            ["write"],
            id="one alone",
        ),
        pytest.param({"tool_configuration": {"allowed_tools": ["read"]}}, [], ["read"], id="old"),
    ],
)
def test_messages_choose_tools(server, toolsets, expected):
    (found,) = messages(server, *toolsets).servers
    assert list(offered(found)) == expected


def test_a_server_that_is_turned_off_is_none():
    assert messages({"tool_configuration": {"enabled": False}}).servers == ()


@pytest.mark.parametrize(
    ("make", "param"),
    [
        pytest.param(lambda: responses({"server_label": ""}), "tools.0.server_label", id="label"),
        pytest.param(
            lambda: responses({"require_approval": "perhaps"}),
            "tools.0.require_approval",
            id="consent",
        ),
        pytest.param(lambda: messages({"url": ""}), "mcp_servers.0.url", id="url"),
        pytest.param(
            lambda: messages({}, {"mcp_server_name": "other"}),
            "tools.0.mcp_server_name",
            id="toolset of nobody",
        ),
    ],
)
def test_what_cannot_be_meant_is_named(make, param):
    with pytest.raises(InvalidRequestError) as refused:
        make()
    assert refused.value.param == param


def test_a_connector_is_ignored_by_name():
    turn = responses({"server_url": None, "connector_id": "connector_gmail"})
    assert turn.servers == ()
    assert turn.echo["ignored"] == ["tools.0:mcp"]


def test_what_opens_a_server_is_not_repeated_in_the_response():
    turn = responses({"authorization": "s3cret", "headers": {"x-key": "s3cret"}})
    assert "s3cret" not in json.dumps(turn.echo["response"])
    (server,) = turn.servers
    assert (server.authorization, server.headers) == ("s3cret", {"x-key": "s3cret"})


def test_a_tool_choice_may_name_a_servers_tool():
    choice = responses({}, tool_choice={"type": "mcp", "server_label": "shop", "name": "read"})
    assert (choice.tool_choice.mode, choice.tool_choice.name) == ("named", "mcp__shop__read")
    choice = responses({}, tool_choice={"type": "mcp", "server_label": "shop"})
    assert choice.tool_choice.mode == "required"


def call(item_id, **more):
    made = {"type": "mcp_call", "id": item_id, "server_label": "shop", "name": "read"}
    return made | {"arguments": "{}", "output": "rows"} | more


def test_calls_that_were_made_beside_each_other_are_one_message_again():
    beside = responses({}, [call("mcp_a00"), call("mcp_a01p")]).messages[1:]
    assert [len(message.blocks) for message in beside] == [2, 1, 1]
    after = responses({}, [call("mcp_a00"), call("mcp_a01")]).messages[1:]
    assert [message.role for message in after] == ["assistant", "tool", "assistant", "tool"]


def test_a_consent_without_its_call_is_kept_and_approves_nothing():
    consent = {"type": "mcp_approval_response", "approval_request_id": "mcpr_x", "approve": True}
    assert responses({}, [consent]).approved == ()


def test_a_failed_call_reads_as_it_did():
    error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no shop"}]}
    *_, result = responses({}, [call("mcp_a00", output=None, error=error)]).messages
    (block,) = result.blocks
    assert isinstance(block, ToolResult)
    assert block.is_error
    assert block.content == (Text("no shop"),)


def test_a_late_result_stands_behind_its_call_and_what_answers_beside_it():
    made = ToolCall("a", "x", "{}"), ToolCall("b", "x", "{}")
    known = (
        Message("assistant", made),
        Message("tool", (ToolResult("b"),)),
        Message("user", (Text("go on"),)),
    )
    roles = [m.role for m in tool_servers.answered(known, ToolResult("a"))]
    assert roles == ["assistant", "tool", "tool", "user"]
    assert tool_servers.answered(known, ToolResult("c"))[-1].role == "tool"
