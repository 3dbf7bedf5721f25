"""The tools of a Responses request: one flat list for the model, and the way back.

A namespace is flattened, because no chat template knows one: the model reads and writes
`namespace__name`, which says whose tool it is and never changes when other tools come or go. Only
`functions`, the namespace that OpenAI's own models have for plain tools, leaves the bare name. So
`Tool.name` is the model's name everywhere, `Tool.namespace` stays empty, and how a call to each
tool must be spelled stands in `shapes`, by that name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from protocols import bodies, freeform
from protocols.responses import tool_servers, wire
from turns.servers import ToolServer
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


DEFAULT_NAMESPACE = "functions"


def flat_name(namespace: str, name: str) -> str:
    """The name of a tool as the model knows it."""
    return f"{namespace}__{name}" if namespace not in ("", DEFAULT_NAMESPACE) else name


class Declared:
    """The tools of one request, gathered in the order in which they appear."""

    def __init__(self, ignored: list[str]) -> None:
        self.tools: list[Tool] = []
        self.shapes: dict[str, dict[str, str]] = {}
        self.servers: list[ToolServer] = []
        self._flat: dict[tuple[str, str], str] = {}
        self._names: set[str] = set()
        self._ignored = ignored

    def declare(self, tools: list[dict[str, Any]], where: str, *, deferred: bool) -> list[str]:
        """Adds tools; gives the flat names of all that are callable, those known before too."""
        found = []
        for index, value in enumerate(tools):
            at = f"{where}.{index}"
            tool = self._read(value, at)
            if tool.type == "mcp" and (server := tool_servers.read(value, at)) is not None:
                self.servers.append(server)
                continue
            if tool.type != "namespace":
                found += self._one(tool, "", at, deferred=deferred)
                continue
            told = tool.description
            for member in tool.tools or ():
                inner = self._read(member, at)
                if told:  # what a namespace is for is said once, by its first member
                    inner.description = _with(inner.description, tool.name, told)
                    told = None
                found += self._one(inner, tool.name, at, deferred=deferred)
        return found

    def flat(self, namespace: str, name: str) -> str:
        """The name under which the model knows a tool, declared or not."""
        return self._flat.get((namespace, name)) or flat_name(namespace, name)

    def _read(self, value: dict[str, Any], where: str) -> wire.WireTool:
        try:
            return msgspec.convert(value, wire.WireTool)
        except msgspec.ValidationError as error:
            raise bodies.fault(error, where) from None

    def _one(self, tool: wire.WireTool, namespace: str, where: str, *, deferred: bool) -> list[str]:
        name = tool.name or tool.type
        if (namespace, name) in self._flat:
            return [self._flat[namespace, name]]
        flat = flat_name(namespace, name)
        if flat in self._names and namespace:
            flat = f"{namespace}__{name}"
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
            made = Tool(flat, description, schema, strict=bool(tool.strict))
        elif tool.type == "custom" and tool.name:
            self._shape(flat, "custom_tool_call", tool.name, namespace)
            made = freeform.tool(flat, description, tool.format)
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


def _with(description: str | None, namespace: str, told: str) -> str:
    name = flat_name(namespace, "*")
    return f"{description or ''}\n\nAbout all tools {name}: {told}".strip()
