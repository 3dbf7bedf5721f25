"""A Responses request as a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from protocols import bodies, drawn
from protocols import headers as heads
from protocols.responses import tool_servers, wire
from protocols.responses.declared import Declared
from protocols.responses.items import Items
from protocols.tool_servers import flat_name
from turns.blocks import Message, Text
from turns.turn import OutputFormat, Sampling, Thinking, ToolChoice, Turn

MODES = ("auto", "required", "none")
ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"


def decode(body: bytes, headers: Mapping[str, str], *, turn_id: str) -> Turn:
    """A `POST /v1/responses` body as a turn."""
    read = bodies.read(body, wire.decode_request)
    request = read.request
    ignored = read.unread(wire.KNOWN)
    declared = Declared(ignored)
    declared.declare(request.tools or [], "tools", deferred=False)
    items = Items(declared)
    messages = items.read(request.input)
    if request.instructions:
        messages = (Message("system", (Text(request.instructions),)), *messages)
    if not messages and not request.previous_response_id and not request.conversation:
        raise bodies.invalid("input", "Field required")
    session, parent = heads.session(headers)
    servers = tuple(
        msgspec.structs.replace(one, listed=items.listed.get(one.label)) for one in declared.servers
    )
    return Turn(
        id=turn_id,
        api="responses",
        model=request.model,
        messages=messages,
        servers=servers,
        approved=tuple(items.approved),
        tools=tuple(declared.tools),
        tool_choice=_tool_choice(request, declared, ignored),
        sampling=_sampling(request),
        thinking=_thinking(request.reasoning),
        output=_output(request.text),
        hints=replace(
            heads.hints(headers, request.nvext, ignored),
            retain_s=heads.retention(headers, request.nvext, [request.cache_control], ignored),
        ),
        salt=heads.salt(headers, request.nvext),
        stream=bool(request.stream),
        session=session or _session_of(request),
        parent_session=parent,
        previous=request.previous_response_id or "",
        store=request.store is not False,
        template_kwargs=request.chat_template_kwargs or {},
        echo={
            "ignored": ignored,
            "dispatch": heads.dispatch(headers),
            "synopses": heads.synopses(headers),
            "max_tool_calls": request.max_tool_calls,
            "shapes": declared.shapes,
            # Who has nothing stored can bring reasoning back in no other way, asked for or not.
            "encrypted": ENCRYPTED in (request.include or ()) or request.store is False,
            "summary": _summary(request.reasoning),
            "compact": items.compact,
            "generate": request.generate is not False,
            "background": bool(request.background),
            "truncate": request.truncation == "auto",
            "conversation": _conversation(request.conversation),
            "response": echo(request),
        },
    )


def echo(request: wire.Request) -> dict[str, Any]:
    """The fields that a response repeats from its request, every one the schema asks for."""
    text = request.text or wire.WireText()
    reasoning = request.reasoning or wire.WireReasoning()
    shape: dict[str, Any] = {"type": "text"}
    conversation = _conversation(request.conversation)
    if text.format is not None and text.format.type != "text":
        shape = {
            name: value
            for name, value in msgspec.structs.asdict(text.format).items()
            if value not in (None, "")
        }
    return {
        "background": bool(request.background),
        "conversation": {"id": conversation} if conversation else None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": request.max_tool_calls,
        "metadata": request.metadata or {},
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "presence_penalty": _or(request.presence_penalty, 0.0),
        "frequency_penalty": _or(request.frequency_penalty, 0.0),
        "previous_response_id": request.previous_response_id,
        "prompt_cache_key": request.prompt_cache_key,
        "reasoning": {"effort": reasoning.effort, "summary": reasoning.summary},
        "safety_identifier": request.safety_identifier,
        "service_tier": request.service_tier or "default",
        "store": request.store is not False,
        "temperature": _or(request.temperature, 1.0),
        "text": {"format": shape} | ({"verbosity": text.verbosity} if text.verbosity else {}),
        "tool_choice": request.tool_choice or "auto",
        "tools": [_echoed(tool) for tool in request.tools or ()],
        "top_logprobs": request.top_logprobs or 0,
        "top_p": _or(request.top_p, 1.0),
        "truncation": request.truncation or "disabled",
        "user": request.user,
    }


def _or(given: float | None, default: float) -> float:
    return default if given is None else given


def _echoed(tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") == "mcp":
        return tool_servers.shown(tool)
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None} | tool


def _tool_choice(request: wire.Request, declared: Declared, ignored: list[str]) -> ToolChoice:
    parallel = request.parallel_tool_calls is not False
    given = request.tool_choice
    if given is None:
        return ToolChoice(parallel=parallel)
    if isinstance(given, str):
        return ToolChoice(_mode(given), parallel=parallel)
    try:
        choice = msgspec.convert(given, wire.WireChoice)
    except msgspec.ValidationError as error:
        raise bodies.fault(error, "tool_choice") from None
    if choice.type == "allowed_tools":
        # The subset is only a wish: leaving tools out would rewrite the head of the prompt.
        ignored.append("tool_choice.tools")
        return ToolChoice(_mode(choice.mode or "auto"), parallel=parallel)
    if choice.type == "mcp":  # whether the tool is there shows when its server was asked
        named = flat_name(choice.server_label or "", choice.name or "")
        return ToolChoice("named" if choice.name else "required", named, parallel=parallel)
    name = choice.name or choice.type
    flat = declared.flat("", name)
    if flat not in {tool.name for tool in declared.tools}:
        raise bodies.invalid("tool_choice", f"The tool '{name}' is not among the tools")
    return ToolChoice("named", name=flat, parallel=parallel)


def _mode(word: str) -> Any:
    if word not in MODES:
        raise bodies.invalid("tool_choice", "Input should be 'auto', 'required', 'none' or a tool")
    return word


def _sampling(request: wire.Request) -> Sampling:
    return Sampling(
        max_tokens=request.max_output_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        logprobs=drawn.wanted(request.top_logprobs, asked=LOGPROBS in (request.include or ())),
    )


def _thinking(reasoning: wire.WireReasoning | None) -> Thinking:
    effort = (reasoning.effort if reasoning else None) or ""
    if effort == "none":
        return Thinking("off")
    return Thinking("on" if effort else "default", effort=effort)


def _summary(reasoning: wire.WireReasoning | None) -> bool:
    """Whether reasoning goes out as a summary (Codex reads those) or as its own text."""
    return bool(reasoning and (reasoning.summary or reasoning.generate_summary))


def _output(text: wire.WireText | None) -> OutputFormat:
    shape = text.format if text else None
    if shape is None or shape.type == "text":
        return OutputFormat()
    if shape.type == "json_object":
        return OutputFormat("json_object")
    if shape.type != "json_schema":
        expected = "Input should be 'text', 'json_object' or 'json_schema'"
        raise bodies.invalid("text.format.type", expected)
    return OutputFormat(
        "json_schema", schema=shape.schema, name=shape.name, strict=bool(shape.strict)
    )


def _conversation(given: str | dict[str, Any] | None) -> str:
    return str(given.get("id", "")) if isinstance(given, dict) else given or ""


def _session_of(request: wire.Request) -> str:
    known = request.client_metadata or wire.ClientMetadata()
    for key in (known.thread_id, known.session_id, request.prompt_cache_key):
        if isinstance(key, str) and key:
            return key[: heads.LONGEST]
    return ""
