"""A streaming tool: its name, what it takes, its contract, and how its source is opened."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any, get_type_hints

from msgspec import Struct, field

from toolruns.contract import ARGUMENTS, Contract, Mode
from toolruns.sources.generator import GeneratorSource
from toolruns.sources.source import Source
from turns.errors import InvalidRequestError

JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}

Opener = Callable[[dict[str, Any], str], Source]
"""From the caller's own arguments and a cursor ("" for the beginning) to a source not yet open."""


class Tool(Struct, frozen=True):
    """What the gateway offers. `parameters` is the JSON schema of the tool's own arguments."""

    name: str
    description: str
    contract: Contract
    open: Opener
    parameters: dict[str, Any] = field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        """The tool's arguments and ours; one of ours that the tool has too gets `_stream`."""
        own = dict(self.parameters.get("properties", {}))
        ours = {self.spelling(name): schema for name, schema in ARGUMENTS.items()}
        if self.contract.resumable:
            ours[self.spelling("resume_from")] = {
                "type": "string",
                "description": "Handle of an earlier call: go on where it stopped.",
            }
        return {
            "type": "object",
            "properties": {**own, **ours},
            "required": list(self.parameters.get("required", [])),
            "additionalProperties": False,
        }

    def spelling(self, name: str) -> str:
        """How one of our arguments is written for this tool."""
        return f"{name}_stream" if name in self.parameters.get("properties", {}) else name

    def split(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The tool's own arguments, and ours under their plain names."""
        names = (*ARGUMENTS, "resume_from")
        ours = {self.spelling(name): name for name in names}
        own = {key: value for key, value in arguments.items() if key not in ours}
        taken = {ours[key]: value for key, value in arguments.items() if key in ours}
        known = self.parameters.get("properties", {})
        strange = sorted(set(own) - set(known))
        if strange:
            message = f"unknown argument {strange[0]!r}; arguments: {', '.join(known) or 'none'}"
            raise InvalidRequestError(message, param=strange[0])
        missing = [name for name in self.parameters.get("required", []) if name not in own]
        if missing:
            message = f"argument {missing[0]!r} is required"
            raise InvalidRequestError(message, param=missing[0])
        return own, taken


Generator = Callable[..., AsyncIterator[Any]]


def streaming_tool(
    *,
    mode: Mode = "chunked",
    name: str = "",
    description: str = "",
    contract: Contract | None = None,
    parameters: dict[str, Any] | None = None,
) -> Callable[[Generator], Tool]:
    """Make a tool of an async generator that yields rows (dicts), lists of them or Arrow batches.

    Without `parameters` the schema is read from the signature's plain types. The generator is
    closed as soon as nobody wants more: put its clean-up into `finally`.
    """

    def make(function: Generator) -> Tool:
        schema = parameters or _schema_of(function)
        return Tool(
            name=name or function.__name__,
            description=description or inspect.getdoc(function) or "",
            contract=contract or Contract(mode),
            open=lambda arguments, _cursor: GeneratorSource(lambda: function(**arguments)),
            parameters=schema,
        )

    return make


def _schema_of(function: Generator) -> dict[str, Any]:
    hints = get_type_hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        type_ = JSON_TYPES.get(hints.get(name, str))
        properties[name] = {"type": type_} if type_ else {}
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}
