"""What the engine may generate when a request binds it: data for structured outputs.

`constraint()` turns tool choice, strict tools and output format into one xgrammar structural tag,
spelled as the grammar spells calls, so that the same parser reads the constrained output.
Reasoning before it stays free. The result holds the fields of vLLM's `StructuredOutputsParams`;
None leaves the engine free.
"""

from __future__ import annotations

from typing import Any

import msgspec

from parsers.grammar import Grammar
from parsers.wires import Wire, wire
from turns.turn import OutputFormat, Tool, ToolChoice

Format = dict[str, Any]
ANY_OBJECT: dict[str, Any] = {"type": "object"}
WHITE: Format = {"type": "regex", "pattern": "[ \\n]{0,3}"}
"""Where templates put newlines, more or fewer: the model writes those it is used to."""
CUSTOM: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


def constraint(
    grammar: Grammar,
    tools: tuple[Tool, ...],
    choice: ToolChoice,
    output: OutputFormat,
    *,
    tail: str,
) -> dict[str, Any] | None:
    """The structured output that the request asks for; None when it asks for none.

    `tail` is the end of the rendered prompt: behind an open thought its closer comes first. Tools
    are named as the model sees them; a custom tool is a function of one string there. A grammar
    that knows no calls is bound by the output format only.
    """
    spelled = wire(grammar, tail)
    offered = tools if spelled.begin else ()
    if choice.mode == "named":
        offered = tuple(tool for tool in offered if tool.name == choice.name)
    wanted = _wanted(spelled, offered, choice, output)
    if wanted is None:
        return None
    parts = [*_thoughts(spelled), *wanted, *_const(spelled.last)]
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
    white = [] if wire.text[0] else [WHITE]
    return [*white, *_const(wire.opener), several, *_const(wire.closer)]


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
        style = {"style": wire.style} if wire.style else {}
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
    white = [WHITE] if wire.thoughts[1] and not wire.text[0] else []
    return [*white, *_text(wire, {"type": "json_schema", "json_schema": schema or ANY_OBJECT})]


def _text(wire: Wire, inside: Format) -> list[Format]:
    begin, end = wire.text
    return [_tag(begin, end, inside)] if end else [*_const(begin), inside]


def _thoughts(wire: Wire) -> list[Format]:
    begin, end, after = wire.thoughts
    if not end:
        return []
    white = [WHITE] if begin[:1].isspace() else []
    block = [*white, _tag(begin.lstrip(), end, _any()), *_const(after.strip())]
    return [{"type": "optional", "content": _sequence(block)}] if begin else block


def _any(excludes: list[str] | None = None) -> Format:
    return {"type": "any_text", "excludes": excludes or []}


def _const(value: str) -> list[Format]:
    return [{"type": "const_string", "value": value}] if value else []


def _tag(begin: str, end: str, content: Format) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _sequence(parts: list[Format]) -> Format:
    return parts[0] if len(parts) == 1 else {"type": "sequence", "elements": parts}
