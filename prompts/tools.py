"""Tools as a template sees them: the header, and the ones that become visible later."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from prompts.exact import dumps
from prompts.guard import Guard
from prompts.memo import Memo
from turns.turn import Tool

Function = dict[str, Any]

CUSTOM_ARGUMENT = "input"
"""The one string that a custom tool takes, as the model sees it."""
_PLACEHOLDER = "DeferredToolPlaceholder"


class ToolHeader:
    """Writes tools for a template, remembering the headers of earlier turns."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._memo: Memo[bytes, list[Function]] = Memo(64)

    def of(self, tools: Sequence[Tool]) -> list[Function]:
        """The functions of the prompt's tool header, in the client's order."""
        shown = [tool for tool in tools if in_header(tool)]
        if not shown:
            return []
        key = msgspec.json.encode(shown)
        known = self._memo.get(key)
        if known is None:
            known = [self._guard.value(function(tool)) for tool in shown]
            self._memo.put(key, known)
        return known

    def expanded(self, name: str, tools: Iterable[Tool]) -> str:
        """The text that shows a deferred tool where it is referenced."""
        found = next((tool for tool in tools if tool.name == name), None)
        if found is None:
            return self._guard(f"Tool {name} is not available.")
        return f"<tools>\n{dumps(self._guard.value(function(found)))}\n</tools>"


def in_header(tool: Tool) -> bool:
    """Whether the tool stands in the prompt's header: there it would break the prefix later."""
    return not tool.deferred and tool.name != _PLACEHOLDER


def function(tool: Tool) -> Function:
    """The tool in the form that templates know. Keys of the schema stay in the client's order."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": _parameters(tool),
        },
    }


def _parameters(tool: Tool) -> dict[str, Any]:
    if tool.kind == "custom" and not tool.parameters:
        says = "The tool's whole input as free text, not JSON."
        if rule := _grammar(tool.format):
            says += f" It must match this grammar:\n{rule}"
        argument = {"type": "string", "description": says}
        return {
            "type": "object",
            "properties": {CUSTOM_ARGUMENT: argument},
            "required": [CUSTOM_ARGUMENT],
        }
    return tool.parameters or {"type": "object", "properties": {}}


def _grammar(form: dict[str, Any] | None) -> str:
    match form:
        case {"definition": str(definition)}:
            return definition
        case {"grammar": {"definition": str(definition)}}:
            return definition
        case {"type": "text"} | None:
            return ""
        case _:
            return json.dumps(form, ensure_ascii=False)
