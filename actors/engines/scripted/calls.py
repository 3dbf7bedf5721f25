"""`call: auto`: which declared tool to call, and with what.

What comes out is executed by a real harness on somebody's machine, so a shell only ever gets
`echo hi-from-tool`, whatever the prompt asks it to run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from actors.engines.scripted.scene import Scene
from actors.engines.scripted.schema import NOTHING, kind_of, smallest
from turns.turn import Tool

COMMAND = "echo hi-from-tool"
NUMBER = r"-?\d+(?:\.\d+)?"
OPERATOR = r"(?:\*\*|[+*/%^\u00d7\u00f7]|(?<=\s)[-x](?=\s))"  # times and division signs too
EXPRESSION = re.compile(rf"\(*{NUMBER}\)*(?:\s*{OPERATOR}\s*\(*{NUMBER}\)*)+")
SPELLED = (
    (re.compile(r"\s+(?:times|multiplied by)\s+"), " * "),
    (re.compile(r"\s+plus\s+"), " + "),
    (re.compile(r"\s+minus\s+"), " - "),
    (re.compile(r"\s+divided by\s+"), " / "),
)
PLACE = re.compile(r"\b(?:in|for|at|of)\s+([A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)*)")
OPERATIONS = {
    "*": ("multiply", "multiplication", "mul", "times", "*"),
    "+": ("add", "addition", "plus", "sum", "+"),
    "-": ("subtract", "subtraction", "sub", "minus", "-"),
    "/": ("divide", "division", "div", "/"),
}


class Kind(Struct, frozen=True):
    """A kind of tool: the names it goes by (best first), what asks for it, what its fields hold."""

    names: tuple[str, ...]
    asks: re.Pattern[str]
    wish: Callable[[Scene, str, dict[str, Any]], Any]


def choose(scene: Scene) -> Tool | None:
    """The best tool to call now, None if there is none.

    The one that the tool choice or the prompt names, else one of the kind that the prompt asks
    for, else a shell, else the first.
    """
    tools = scene.tools
    if not tools:
        return None
    choice = scene.request.tool_choice if scene.request else None
    if choice is not None and choice.mode == "named":
        return next((tool for tool in tools if tool.name == choice.name), None)
    mentioned = [tool for tool in tools if _mentions(scene.last_user, tool.name)]
    if mentioned:
        return mentioned[0]
    found = {name: tool for name, kind in KINDS.items() if (tool := _of_kind(tools, kind))}
    for name, tool in found.items():
        if KINDS[name].asks.search(scene.last_user):
            return tool
    plain = [tool for tool in tools if not tool.namespace]
    return found.get("shell") or (plain or list(tools))[0]


def arguments(tool: Tool, scene: Scene) -> str:
    """JSON text that the tool's schema admits; free text for a custom tool."""
    if tool.kind == "custom":
        return CUSTOM.get(tool.name, scene.last_user or COMMAND)
    kind = next((kind for kind in KINDS.values() if _rank(kind, tool) is not None), None)

    def wish(name: str, schema: dict[str, Any]) -> Any:
        return kind.wish(scene, name, schema) if kind else NOTHING

    value = smallest({"type": "object", **tool.parameters}, wish)
    return msgspec.json.encode(value).decode()


def _mentions(text: str, name: str) -> bool:
    """A name that stands by itself: "ls" is no mention, and no part of a path is one."""
    alone = rf"(?<![\w/.-]){re.escape(name)}(?![\w/-])"
    return len(name) > 2 and bool(re.search(alone, text))  # noqa: PLR2004 - the one of "ls"


def _of_kind(tools: tuple[Tool, ...], kind: Kind) -> Tool | None:
    ranked = [
        (rank, at) for at, tool in enumerate(tools) if (rank := _rank(kind, tool)) is not None
    ]
    return tools[min(ranked)[1]] if ranked else None


def _rank(kind: Kind, tool: Tool) -> int | None:
    name = tool.name.lower()
    for rank, known in enumerate(kind.names):
        if name == known or name.endswith(("__" + known, "_" + known, "." + known)):
            # A tool inside a namespace is the choice only where no plain one is.
            return rank + (len(kind.names) if tool.namespace else 0)
    return None


def _shell(scene: Scene, name: str, schema: dict[str, Any]) -> Any:
    if name not in ("command", "cmd", "commands", "script"):
        return NOTHING
    if kind_of(schema) != "array":
        return COMMAND
    inner = schema.get("items", {})
    if kind_of(inner) == "object":
        return [smallest(inner, lambda name, schema: _shell(scene, name, schema))]
    return [COMMAND] if name == "commands" else ["bash", "-lc", COMMAND]


def expression(text: str) -> str:
    """The first arithmetic expression in a text, "" if there is none."""
    for words, sign in SPELLED:
        text = words.sub(sign, text)
    found = EXPRESSION.search(text)
    return found[0].strip() if found else ""


def _calculator(scene: Scene, name: str, schema: dict[str, Any]) -> Any:
    sum_ = expression(scene.last_user) or "1 + 1"
    if name in ("expression", "expr", "equation", "formula", "calculation", "input", "query"):
        return sum_
    numbers = re.findall(NUMBER, sum_)
    sides = {"a": 0, "x": 0, "left": 0, "num1": 0, "first": 0}
    sides |= {"b": 1, "y": 1, "right": 1, "num2": 1, "second": 1}
    if name in sides and len(numbers) > sides[name]:
        number = numbers[sides[name]]
        if kind_of(schema) == "string":
            return number
        return float(number) if "." in number else int(number)
    if name in ("operation", "operator", "op"):
        sign = next((sign for sign in OPERATIONS if sign in sum_[1:]), "*")
        allowed = schema.get("enum", OPERATIONS[sign])
        return next((word for word in OPERATIONS[sign] if word in allowed), NOTHING)
    return NOTHING


def _weather(scene: Scene, name: str, _schema: dict[str, Any]) -> Any:
    if name not in ("city", "location", "place", "q", "query"):
        return NOTHING
    found = PLACE.search(scene.last_user)
    return found[1] if found else "Paris"


KINDS = {
    "calculator": Kind(
        names=("calculator", "calculate", "calc", "evaluate", "math"),
        asks=re.compile(
            rf"calculat|arithmetic|{EXPRESSION.pattern}|\d\s+times\s+\d", re.IGNORECASE
        ),
        wish=_calculator,
    ),
    "weather": Kind(
        names=("weather", "forecast"),
        asks=re.compile(r"weather|forecast|temperature|rain|sunny", re.IGNORECASE),
        wish=_weather,
    ),
    "shell": Kind(
        names=(
            "bash",
            "shell_command",
            "exec_command",
            "shell",
            "run_shell_command",
            "exec",
            "execute_command",
            "run_commands",
            "run_command",
            "terminal",
        ),
        asks=re.compile(r"\b(?:commands?|run|execute|shell|terminal)\b", re.IGNORECASE),
        wish=_shell,
    ),
}

CUSTOM = {
    "exec": (
        f'const r = await tools.exec_command({{cmd: "{COMMAND}"}});\ntext(JSON.stringify(r));\n'
    ),
    "apply_patch": (
        "*** Begin Patch\n*** Add File: hi-from-tool.txt\n+hi-from-tool\n*** End Patch\n"
    ),
}
