"""The tools of a Responses request: one flat list for the model, and the way back.

A namespace is flattened, because no chat template knows one. A member keeps its bare name unless
an earlier tool has it; then it is called `namespace__name`. So a tool that appears later in the
conversation never renames an earlier one, and the prompt's head stays as it was. How a call to
each tool must be spelled stands in `shapes`, by the flat name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from protocols import bodies, freeform
from protocols.responses import wire
from turns.turn import Tool

TEXT = {"type": "string"}
# Tools that the client runs but OpenAI defines: item type of a call, description, schema.
CLIENT_TOOLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "local_shell": (
        "local_shell_call",
        "Run a command on the user's machine. `command` is the argument vector.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "array", "items": TEXT},
                "working_directory": TEXT,
                "timeout_ms": {"type": "integer"},
                "env": {"type": "object", "additionalProperties": TEXT},
            },
            "required": ["command"],
        },
    ),
    "shell": (
        "shell_call",
        "Run shell commands on the user's machine.",
        {
            "type": "object",
            "properties": {
                "commands": {"type": "array", "items": TEXT},
                "timeout_ms": {"type": "integer"},
                "max_output_length": {"type": "integer"},
            },
            "required": ["commands"],
        },
    ),
    "apply_patch": (
        "apply_patch_call",
        "Create, update or delete one file. `diff` is a V4A diff, absent for delete_file.",
        {
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
                "path": TEXT,
                "diff": TEXT,
            },
            "required": ["type", "path"],
        },
    ),
}


class Declared:
    """The tools of one request, gathered in the order in which they appear."""

    def __init__(self, ignored: list[str]) -> None:
        self.tools: list[Tool] = []
        self.shapes: dict[str, dict[str, str]] = {}
        self._flat: dict[tuple[str, str], str] = {}
        self._names: set[str] = set()
        self._ignored = ignored

    def declare(self, tools: list[dict[str, Any]], where: str, *, deferred: bool) -> list[str]:
        """Adds tools; gives the flat names of all that are callable, those known before too."""
        found = []
        # Plain functions first: they have no namespace to fall back on for a name of their own.
        read = [self._read(value, f"{where}.{index}") for index, value in enumerate(tools)]
        for tool in read:
            if tool.type != "namespace":
                found += self._one(tool, "", where, deferred=deferred)
        for tool in read:
            if tool.type == "namespace":
                for index, member in enumerate(tool.tools or ()):
                    inner = self._read(member, f"{where}.tools.{index}")
                    found += self._one(inner, tool.name, where, deferred=deferred)
        return found

    def flat(self, namespace: str, name: str) -> str:
        """The name under which the model knows a tool; its bare name if it is not declared."""
        return self._flat.get((namespace, name), name)

    def _read(self, value: dict[str, Any], where: str) -> wire.WireTool:
        try:
            return msgspec.convert(value, wire.WireTool)
        except msgspec.ValidationError as error:
            raise bodies.fault(error, where) from None

    def _one(self, tool: wire.WireTool, namespace: str, where: str, *, deferred: bool) -> list[str]:
        name = tool.name or tool.type
        if (namespace, name) in self._flat:
            return [self._flat[namespace, name]]
        flat = name if name not in self._names else f"{namespace}__{name}"
        made = self._tool(tool, flat, namespace, deferred=deferred)
        if made is None or flat in self._names:
            self._ignored.append(f"{where}:{name}")
            return []
        self._names.add(flat)
        self._flat[namespace, name] = flat
        self.tools.append(made)
        return [flat]

    def _tool(
        self, tool: wire.WireTool, flat: str, namespace: str, *, deferred: bool
    ) -> Tool | None:
        description = tool.description or ""
        if tool.type == "function" and tool.name:
            if namespace:
                self._shape(flat, "function_call", tool.name, namespace)
            schema = tool.parameters or {}
            made = Tool(flat, description, schema, strict=bool(tool.strict), namespace=namespace)
        elif tool.type == "custom" and tool.name:
            self._shape(flat, "custom_tool_call", tool.name, namespace)
            made = freeform.tool(flat, description, tool.format, namespace=namespace)
        elif tool.type == "tool_search" and tool.execution == "client":
            self._shape(flat, "tool_search_call", tool.type, namespace)
            made = Tool(flat, description, tool.parameters or {})
        elif tool.type in CLIENT_TOOLS:
            item, told, schema = CLIENT_TOOLS[tool.type]
            self._shape(flat, item, tool.type, namespace)
            made = Tool(flat, description or told, schema)
        else:
            return None
        return msgspec.structs.replace(made, deferred=deferred)

    def _shape(self, flat: str, item: str, name: str, namespace: str) -> None:
        self.shapes[flat] = {"item": item, "name": name, "namespace": namespace}
