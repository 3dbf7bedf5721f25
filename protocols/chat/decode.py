"""A Chat Completions request as a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from protocols import bodies, drawn, freeform
from protocols import headers as heads
from protocols.chat import wire
from protocols.chat.messages import messages
from turns.turn import OutputFormat, Sampling, Thinking, Tool, ToolChoice, Turn

MOST_CHOICES = 16
MODES = ("auto", "required", "none")


def decode(body: bytes, headers: Mapping[str, str], *, turn_id: str) -> Turn:
    """A `POST /v1/chat/completions` body as a turn."""
    read = bodies.read(body, wire.decode_request)
    request = read.request
    if not request.messages:
        raise bodies.invalid("messages", "at least one message is required")
    if (request.n or 1) > MOST_CHOICES:
        raise bodies.invalid("n", f"Input should be at most {MOST_CHOICES}")
    ignored = read.unread(wire.KNOWN)
    session, parent = heads.session(headers)
    legacy = bool(request.functions) and not request.tools
    return Turn(
        id=turn_id,
        api="chat",
        model=request.model,
        messages=messages(request.messages),
        tools=_tools(request, ignored),
        tool_choice=_tool_choice(request, ignored, legacy=legacy),
        sampling=_sampling(request),
        thinking=_thinking(request),
        output=_output(request.response_format),
        hints=replace(
            heads.hints(headers, request.nvext, ignored),
            retain_s=heads.retention(headers, request.nvext, [request.cache_control], ignored),
        ),
        salt=heads.salt(headers, request.nvext),
        stream=bool(request.stream),
        session=session or (request.prompt_cache_key or "")[: heads.LONGEST],
        parent_session=parent,
        template_kwargs=_template_kwargs(request),
        echo={
            "ignored": ignored,
            "dispatch": heads.dispatch(headers),
            "include_usage": bool(request.stream_options and request.stream_options.include_usage),
            "legacy": legacy,
            "choices": request.n or 1,
            "details": request.reasoning is not None,
        },
    )


def _tools(request: wire.Request, ignored: list[str]) -> tuple[Tool, ...]:
    found = []
    for index, tool in enumerate(request.tools or ()):
        if tool.function is not None:
            found.append(_function(tool.function))
        elif tool.custom is not None:
            found.append(_custom(tool.custom))
        else:
            ignored.append(f"tools.{index}:{tool.type}")
    if not found:
        found = [_function(function) for function in request.functions or ()]
    return tuple(found)


def _function(tool: wire.WireFunction) -> Tool:
    parameters = tool.parameters or {}
    return Tool(tool.name, tool.description or "", parameters, strict=bool(tool.strict))


def _custom(tool: wire.WireCustom) -> Tool:
    return freeform.tool(tool.name, tool.description or "", tool.format)


def _tool_choice(request: wire.Request, ignored: list[str], *, legacy: bool) -> ToolChoice:
    # The old API could only make one call.
    parallel = request.parallel_tool_calls is not False and not legacy
    choice: str | wire.WireChoice | wire.Named | None = request.tool_choice
    if legacy and choice is None:
        choice = request.function_call
    if choice is None:
        return ToolChoice(parallel=parallel)
    if isinstance(choice, str):
        return ToolChoice(_mode(choice), parallel=parallel)
    if isinstance(choice, wire.WireChoice) and choice.allowed_tools is not None:
        ignored.append("tool_choice.allowed_tools.tools")
        return ToolChoice(_mode(str(choice.allowed_tools.get("mode", "auto"))), parallel=parallel)
    name = choice.name or ""
    if isinstance(choice, wire.WireChoice):
        named = choice.function or choice.custom
        name = named.name if named else name
    if not name:
        raise bodies.invalid("tool_choice.function.name", "Field required")
    return ToolChoice("named", name=name, parallel=parallel)


def _mode(word: str) -> Any:
    if word not in MODES:
        raise bodies.invalid("tool_choice", "Input should be 'auto', 'required', 'none' or a tool")
    return word


def _sampling(request: wire.Request) -> Sampling:
    stop = [request.stop] if isinstance(request.stop, str) else request.stop or []
    return Sampling(
        max_tokens=request.max_completion_tokens or request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        min_p=request.min_p,
        seed=request.seed,
        presence_penalty=request.presence_penalty,
        frequency_penalty=request.frequency_penalty,
        repetition_penalty=request.repetition_penalty,
        stop=tuple(word for word in stop if word),
        logprobs=drawn.wanted(request.top_logprobs, asked=bool(request.logprobs)),
    )


def _template_kwargs(request: wire.Request) -> dict[str, Any]:
    """What the chat template is given; a template of the client's own stands among it."""
    own = {"chat_template": request.chat_template} if request.chat_template else {}
    return {**(request.chat_template_kwargs or {}), **own}


def _thinking(request: wire.Request) -> Thinking:
    """One setting out of the five ways in which clients say it; an explicit switch wins."""
    asked = request.reasoning or wire.WireThinking()
    switch = request.thinking
    if isinstance(switch, wire.WireThinking):
        asked_type = switch.type
    else:
        asked_type = None if switch is None else ("enabled" if switch else "disabled")
    effort = request.reasoning_effort or asked.effort or ""
    budget = request.thinking_budget or asked.max_tokens
    if isinstance(switch, wire.WireThinking):
        effort, budget = effort or switch.effort or "", switch.budget_tokens or budget
    off = (
        asked_type == "disabled"
        or request.enable_thinking is False
        or asked.enabled is False
        or effort == "none"
    )
    if off:
        return Thinking("off")
    on = asked_type or request.enable_thinking or asked.enabled or effort or budget
    return Thinking("on" if on else "default", effort=effort, budget=budget, show=not asked.exclude)


def _output(shape: wire.WireFormat | None) -> OutputFormat:
    if shape is None or shape.type == "text":
        return OutputFormat()
    if shape.type == "json_object":
        return OutputFormat("json_object")
    if shape.type != "json_schema" or shape.json_schema is None:
        expected = "Input should be 'text', 'json_object' or 'json_schema' with its schema"
        raise bodies.invalid("response_format", expected)
    schema = shape.json_schema
    return OutputFormat(
        "json_schema", schema=schema.schema, name=schema.name, strict=bool(schema.strict)
    )
