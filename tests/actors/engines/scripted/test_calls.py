from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.engines.scripted.calls import arguments, choose, expression
from actors.engines.scripted.scene import Scene, look
from tests.actors.engines.scripted.toy import ask, tool
from turns.turn import Tool, ToolChoice

STRING = {"type": "string"}
BASH = tool("Bash", ["command"], command=STRING, timeout={"type": "number"})
READ = tool("Read", ["file_path"], file_path=STRING)
CALCULATOR = tool("calculator", ["expression"], expression=STRING)
WEATHER = tool("get_weather", ["city"], city=STRING)
OPERANDS = tool(
    "calculate",
    ["a", "b", "operation"],
    a={"type": "number"},
    b={"type": "number"},
    operation={"enum": ["add", "multiply"]},
)


def scene(says: str, *tools: Tool, **fields: Any) -> Scene:
    return look(ask(says, tools=tools, **fields))


@pytest.mark.parametrize(
    ("says", "tools", "name"),
    [
        pytest.param("Run the command echo x", [READ, BASH], "Bash", id="command"),
        pytest.param("Hello", [READ, BASH], "Bash", id="shell-by-default"),
        pytest.param("Hello", [READ, WEATHER], "Read", id="no-shell"),
        pytest.param("Please Read the file", [BASH, READ], "Read", id="mentioned"),
        pytest.param("Run it in /home/Read/x", [READ, BASH], "Bash", id="a-path-is-no-mention"),
        pytest.param(
            "use the calculator to verify 2 * 3", [BASH, CALCULATOR], "calculator", id="calc"
        ),
        pytest.param("what is 2 * 3?", [BASH, OPERANDS], "calculate", id="expression"),
        pytest.param("Is it warm? weather please", [BASH, WEATHER], "get_weather", id="weather"),
        pytest.param("on 2026-01-02 say hi", [CALCULATOR, BASH], "Bash", id="a-date-is-no-sum"),
    ],
)
def test_the_best_tool(says: str, tools: list[Tool], name: str) -> None:
    chosen = choose(scene(says, *tools))
    assert chosen is not None
    assert chosen.name == name


def test_the_tool_choice_comes_first() -> None:
    named = scene("Run it", BASH, READ, tool_choice=ToolChoice("named", "Read"))
    assert choose(named) == READ
    assert choose(scene("Run it")) is None


def test_a_plain_tool_comes_before_one_in_a_namespace() -> None:
    inner = Tool("exec_command", namespace="functions")
    plain = Tool("run_command")
    assert choose(scene("Run it", inner, plain)) == plain
    assert choose(scene("Run it", inner)) == inner


@pytest.mark.parametrize(
    ("called", "says", "expected"),
    [
        pytest.param(BASH, "rm -rf /", {"command": "echo hi-from-tool"}, id="only-ever-echo"),
        pytest.param(
            tool("shell", ["command"], command={"type": "array", "items": STRING}),
            "",
            {"command": ["bash", "-lc", "echo hi-from-tool"]},
            id="argv",
        ),
        pytest.param(
            tool("run_commands", ["commands"], commands={"type": "array", "items": STRING}),
            "",
            {"commands": ["echo hi-from-tool"]},
            id="list",
        ),
        pytest.param(
            tool(
                "run_commands",
                commands={"type": "array", "items": {"properties": {"command": STRING}}},
            ),
            "",
            {"commands": [{"command": "echo hi-from-tool"}]},
            id="list-of-objects",
        ),
        pytest.param(CALCULATOR, "15 * 23 equals?", {"expression": "15 * 23"}, id="expression"),
        pytest.param(CALCULATOR, "15 times 23", {"expression": "15 * 23"}, id="in-words"),
        pytest.param(CALCULATOR, "verify it", {"expression": "1 + 1"}, id="no-expression"),
        pytest.param(
            OPERANDS, "15 * 23", {"a": 15, "b": 23, "operation": "multiply"}, id="operands"
        ),
        pytest.param(OPERANDS, "1.5 + 2", {"a": 1.5, "b": 2, "operation": "add"}, id="decimals"),
        pytest.param(WEATHER, "weather in New York now", {"city": "New York"}, id="city"),
        pytest.param(WEATHER, "the weather", {"city": "Paris"}, id="no-city"),
        pytest.param(READ, "x", {"file_path": "scripted"}, id="by-schema"),
        pytest.param(Tool("bare"), "x", {}, id="no-schema"),
    ],
)
def test_arguments(called: Tool, says: str, expected: dict[str, Any]) -> None:
    assert msgspec.json.decode(arguments(called, scene(says, called))) == expected


def test_a_custom_tool_gets_free_text() -> None:
    assert arguments(Tool("grep", kind="custom"), scene("find it")) == "find it"
    assert "*** Begin Patch" in arguments(Tool("apply_patch", kind="custom"), scene("x"))
    assert "echo hi-from-tool" in arguments(Tool("exec", kind="custom"), scene("x"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("what 15 * 23 equals, then", "15 * 23"),
        ("(2+3)*4 = ?", "(2+3)*4"),
        ("9 - 4", "9 - 4"),
        ("7 x 8", "7 x 8"),
        ("call 555-1234", ""),
        ("2026-01-01", ""),
        ("nothing", ""),
    ],
)
def test_an_expression_in_a_text(text: str, found: str) -> None:
    assert expression(text) == found


FIXTURES = Path(
    os.environ.get("TREADLE_FIXTURES", Path(__file__).parents[5] / "shared" / "fixtures")
)


def recorded(body: dict[str, Any]) -> Scene:
    """The scene of a recorded request, as far as the choice of a tool looks at it."""
    tools = []
    for one in body["tools"]:
        inner = one.get("function", one)
        if "name" in inner and "tools" not in inner:
            schema = inner.get("input_schema", inner.get("parameters", {}))
            kind = "custom" if one.get("type") == "custom" and not schema else "function"
            tools.append(
                Tool(inner["name"], "", schema, kind, deferred=inner.get("defer_loading", False))
            )
    return scene("Run the command echo hi-from-tool and report what it prints.", *tools)


@pytest.mark.parametrize(
    "name",
    [
        "claude-anthropic-turn1",
        "claude-anthropic-bare-turn1",
        "claude-anthropic-oldmodel-turn1",
        "codex-responses-fallback-turn1",
        "codex-responses-catalog-turn1",
        "opencode-chat-turn2",
        "qwen-anthropic-turn2",
        "openclaw-chat-turn1",
        "pi-responses-turn2",
        "cline-chat-turn2",
    ],
)
def test_every_harness_gets_its_shell_called(name: str) -> None:
    path = FIXTURES / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no recorded requests under {FIXTURES} (TREADLE_FIXTURES)")
    expected = msgspec.json.decode((FIXTURES / "_shell_tools.json").read_bytes())
    expected = expected[re.split("-", name, maxsplit=1)[0]]
    request = msgspec.json.decode(path.read_bytes())["request"]
    seen = recorded(request.get("body", request))
    chosen = choose(seen)
    assert chosen is not None
    assert chosen.name == expected["tool"]
    assert msgspec.json.decode(arguments(chosen, seen)) == expected["args"]
