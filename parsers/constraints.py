"""What the engine may generate when a request binds it: data for structured outputs.

`constraint()` turns tool choice, strict tools and output format into one xgrammar structural tag,
spelled in the wire syntax of the grammar, so that the same parser reads the constrained output.
Reasoning before it stays free. The result holds the fields of vLLM's `StructuredOutputsParams`;
None leaves the engine free.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from turns.turn import OutputFormat, Tool, ToolChoice

Format = dict[str, Any]
ANY_OBJECT: dict[str, Any] = {"type": "object"}
CUSTOM: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


class Wire(Struct, frozen=True):
    """How a wire syntax spells calls, text and thoughts.

    A call is `begin` (`{name}` stands for the tool), its arguments, `end`; where the syntax
    numbers its calls, a number and `numbered` follow `begin`. The arguments are in `style`, a
    content style of xgrammar, or, where it has none, one `parameter` element (begin with `{key}`,
    end) each. Calls stand between `opener` and `closer`, `between` them, after `lead`.

    `trigger` is how a call or its section starts. Free text may not hold it when calls are
    forbidden, unless the syntax is `bare` JSON. `text` are the marks around visible text, which
    stands before calls (`first`) or in their place (`instead`). `last` ends the whole message.
    """

    begin: str
    end: str
    trigger: str
    style: str = "json"
    parameter: tuple[str, str] = ("", "")
    numbered: str = ""
    opener: str = ""
    closer: str = ""
    between: str = ""
    lead: str = ""
    bare: bool = False
    text: tuple[str, str] = ("", "")
    text_stands: Literal["free", "first", "instead"] = "free"
    thoughts: tuple[str, str] = ("", "")
    after_thoughts: str = ""
    last: str = ""


def constraint(
    wire: Wire,
    tools: tuple[Tool, ...],
    choice: ToolChoice,
    output: OutputFormat,
    *,
    in_thoughts: bool = False,
) -> dict[str, Any] | None:
    """The structured output that the request asks for; None when it asks for none.

    `in_thoughts`: the prompt ends inside a thought, so that its closer comes first. Tools are named
    as the model sees them; a custom tool is a function of one string there.
    """
    offered = tools
    if choice.mode == "named":
        offered = tuple(tool for tool in tools if tool.name == choice.name)
    wanted = _wanted(wire, offered, choice, output)
    if wanted is None:
        return None
    parts = [*_thoughts(wire, in_thoughts=in_thoughts), *wanted, *_const(wire.last)]
    tag = {"type": "structural_tag", "format": _sequence(parts)}
    return {"structural_tag": msgspec.json.encode(tag).decode()}


def _wanted(
    wire: Wire, tools: tuple[Tool, ...], choice: ToolChoice, output: OutputFormat
) -> list[Format] | None:
    """What must come after the thoughts."""
    answer = _answer(wire, output)
    if choice.mode == "none" or not tools:
        if answer is not None:
            return answer
        forbids = choice.mode == "none" and tools and not wire.bare
        return _text(wire, _any([wire.trigger])) if forbids else None
    calls = _calls(wire, tools, once=not choice.parallel or choice.mode == "named")
    before = _text(wire, _any()) if wire.text_stands == "first" else []
    if choice.mode in {"required", "named"}:
        return [*before, *calls]
    if answer is not None:
        return [{"type": "or", "elements": [_sequence(answer), _sequence([*before, *calls])]}]
    if choice.parallel and not any(tool.strict for tool in tools):
        return None
    return _free(wire, tools, calls, once=not choice.parallel)


def _free(wire: Wire, tools: tuple[Tool, ...], calls: list[Format], *, once: bool) -> list[Format]:
    """Free text in which a call, once it starts, must be one of the declared ones."""
    text = _text(wire, _any())
    match wire.text_stands:
        case "first":
            return [*text, {"type": "optional", "content": _sequence(calls)}]
        case "instead":
            return [{"type": "or", "elements": [_sequence(text), _sequence(calls)]}]
        case "free":
            tags = [_call(wire, tool) for tool in tools]
            if wire.opener:
                tags = [_tag(wire.opener, wire.closer, _several(wire, tags, once=once))]
            triggered: Format = {"type": "triggered_tags", "triggers": [wire.trigger], "tags": tags}
            return [{**triggered, "stop_after_first": once}]


def _calls(wire: Wire, tools: tuple[Tool, ...], *, once: bool) -> list[Format]:
    several = _several(wire, [_call(wire, tool) for tool in tools], once=once)
    return [*_const(wire.lead + wire.opener), several, *_const(wire.closer)]


def _several(wire: Wire, tags: list[Format], *, once: bool) -> Format:
    return {
        "type": "tags_with_separator",
        "tags": tags,
        "separator": wire.between,
        "at_least_one": True,
        "stop_after_first": once,
    }


def _call(wire: Wire, tool: Tool) -> Format:
    schema = CUSTOM if tool.kind == "custom" else tool.parameters
    parts = [_arguments(wire, schema)]
    if wire.numbered:
        parts = [{"type": "regex", "pattern": "[0-9]+"}, *_const(wire.numbered), *parts]
    return _tag(wire.begin.replace("{name}", tool.name), wire.end, _sequence(parts))


def _arguments(wire: Wire, schema: dict[str, Any]) -> Format:
    begin, end = wire.parameter
    if not end:
        style = {} if wire.style == "json" else {"style": wire.style}
        return {"type": "json_schema", "json_schema": schema or ANY_OBJECT, **style}
    required = schema.get("required", ())
    elements = []
    for key, value in schema.get("properties", {}).items():
        element = _tag(begin.replace("{key}", key), end, _value(value, schema))
        one: Format = element if key in required else {"type": "optional", "content": element}
        elements.append(one)
    return _sequence(elements) if elements else {"type": "const_string", "value": ""}


def _value(value: dict[str, Any], schema: dict[str, Any]) -> Format:
    """A value in an element: text for a string, JSON for everything else."""
    if value.get("type") == "string" and "enum" in value:
        return {"type": "or", "elements": [part for word in value["enum"] for part in _const(word)]}
    if value.get("type") == "string":
        return _any()
    defs = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {"type": "json_schema", "json_schema": {**defs, **value}}


def _answer(wire: Wire, output: OutputFormat) -> list[Format] | None:
    if output.kind == "text":
        return None
    schema = output.schema if output.kind == "json_schema" else None
    return _text(wire, {"type": "json_schema", "json_schema": schema or ANY_OBJECT})


def _text(wire: Wire, inside: Format) -> list[Format]:
    begin, end = wire.text
    return [_tag(begin, end, inside)] if end else [*_const(begin), inside]


def _thoughts(wire: Wire, *, in_thoughts: bool) -> list[Format]:
    begin, end = wire.thoughts
    if not end:
        return []
    block = [_tag("" if in_thoughts else begin, end, _any()), *_const(wire.after_thoughts)]
    return block if in_thoughts else [{"type": "optional", "content": _sequence(block)}]


def _any(excludes: list[str] | None = None) -> Format:
    return {"type": "any_text", "excludes": excludes or []}


def _const(value: str) -> list[Format]:
    return [{"type": "const_string", "value": value}] if value else []


def _tag(begin: str, end: str, content: Format) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _sequence(parts: list[Format]) -> Format:
    return parts[0] if len(parts) == 1 else {"type": "sequence", "elements": parts}
