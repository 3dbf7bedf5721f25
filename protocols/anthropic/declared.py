"""The tools of a Messages request.

Tools that the client runs but Anthropic defines (`bash_*`, `text_editor_*`, `memory_*`) have no
schema in the request; theirs is written here, so the model can call them. Tools that only
Anthropic's servers can run are left out and reported.
"""

from __future__ import annotations

from typing import Any

from protocols.anthropic import wire
from protocols.anthropic.tool_servers import TOOLSET
from turns.turn import Tool

TEXT = {"type": "string"}
LINES = {"type": "array", "items": {"type": "integer"}}


def _schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


# Prefix of the dated type -> (description, schema), after the public descriptions of these tools.
CLIENT_TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "bash_": (
        "Run a command in a persistent bash session. `restart` starts the session anew.",
        _schema([], command=TEXT, restart={"type": "boolean"}),
    ),
    "text_editor_": (
        "View and edit text files: commands view, create, str_replace, insert.",
        _schema(
            ["command", "path"],
            command={"type": "string", "enum": ["view", "create", "str_replace", "insert"]},
            path=TEXT,
            file_text=TEXT,
            old_str=TEXT,
            new_str=TEXT,
            insert_line={"type": "integer"},
            insert_text=TEXT,
            view_range=LINES,
        ),
    ),
    "memory_": (
        "Keep notes under /memories: commands view, create, str_replace, insert, delete, rename.",
        _schema(
            ["command"],
            command={
                "type": "string",
                "enum": ["view", "create", "str_replace", "insert", "delete", "rename"],
            },
            path=TEXT,
            file_text=TEXT,
            old_str=TEXT,
            new_str=TEXT,
            insert_line={"type": "integer"},
            insert_text=TEXT,
            view_range=LINES,
            old_path=TEXT,
            new_path=TEXT,
        ),
    ),
}
SERVER_SEARCH = "tool_search_tool_"


def tools(declared: list[wire.WireTool], ignored: list[str]) -> tuple[Tool, ...]:
    """The tools the model may call, in order. Names of those left out go to `ignored`."""
    # Without a server to search them, deferred tools could never be found: they are shown at once.
    searched = any((tool.type or "").startswith(SERVER_SEARCH) for tool in declared)
    found = []
    for index, tool in enumerate(declared):
        if tool.type == TOOLSET:
            continue
        read = _tool(tool, deferred=bool(tool.defer_loading) and not searched)
        if read is None:
            ignored.append(f"tools.{index}:{tool.type or tool.name or 'unnamed'}")
        else:
            found.append(read)
    return tuple(found)


def _tool(tool: wire.WireTool, *, deferred: bool) -> Tool | None:
    if not tool.name:
        return None
    if tool.input_schema is not None or tool.type in (None, "custom"):
        return Tool(
            tool.name,
            tool.description or "",
            tool.input_schema or {},
            strict=bool(tool.strict),
            deferred=deferred,
        )
    for prefix, (description, schema) in CLIENT_TOOLS.items():
        if (tool.type or "").startswith(prefix):
            return Tool(tool.name, tool.description or description, schema, deferred=deferred)
    return None
