"""A Messages request as a turn.

Unknown fields and unknown betas never fail a request: Claude Code answers a vague 400 with six
differently shaped retries. What is not honoured is named in `Turn.echo["ignored"]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from protocols import bodies
from protocols import headers as heads
from protocols.anthropic import content, wire
from protocols.anthropic.declared import tools
from protocols.anthropic.retention import ttls
from protocols.anthropic.tool_servers import servers
from turns.blocks import Block, Message, Role, ToolCall, ToolResult
from turns.turn import Hints, OutputFormat, Sampling, Thinking, ToolChoice, Turn

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
CHOICES = {"auto": "auto", "any": "required", "tool": "named", "none": "none"}


def decode(body: bytes, headers: Mapping[str, str], *, turn_id: str) -> Turn:
    """A `POST /v1/messages` body as a turn."""
    return _decode(body, headers, turn_id, counting=False)


def decode_count(body: bytes, headers: Mapping[str, str], *, turn_id: str) -> Turn:
    """A `POST /v1/messages/count_tokens` body: the same without `max_tokens`."""
    return _decode(body, headers, turn_id, counting=True)


def _decode(body: bytes, headers: Mapping[str, str], turn_id: str, *, counting: bool) -> Turn:
    read = bodies.read(body, wire.decode_request)
    request = read.request
    if request.max_tokens is None and not counting:
        raise bodies.invalid("max_tokens", "Field required")
    if not request.messages:
        raise bodies.invalid("messages", "at least one message is required")
    ignored = read.unread(wire.KNOWN)
    session, parent = heads.session(headers)
    return Turn(
        id=turn_id,
        api="messages",
        model=request.model,
        messages=_messages(request),
        tools=tools(request.tools or [], ignored),
        tool_choice=_tool_choice(request),
        sampling=_sampling(request),
        thinking=_thinking(request),
        output=_output(request),
        hints=_hints(headers, request, ignored, ttls(body, request)),
        salt=heads.salt(headers, request.nvext),
        stream=bool(request.stream),
        session=session or _session_of(request.metadata),
        parent_session=parent,
        template_kwargs=request.chat_template_kwargs or {},
        edits=_edits(request.context_management),
        servers=servers(request),
        echo={
            "ignored": ignored,
            "dispatch": heads.dispatch(headers),
            "synopses": heads.synopses(headers),
        },
    )


def _hints(
    headers: Mapping[str, str], request: wire.Request, ignored: list[str], controls: list[Any]
) -> Hints:
    hints = msgspec.structs.replace(
        heads.hints(headers, request.nvext, ignored),
        retain_s=heads.retention(
            headers, request.nvext, [request.cache_control, *controls], ignored
        ),
    )
    budget = request.output_config.task_budget if request.output_config else None
    if budget is None:
        return hints
    left = budget.total if budget.remaining is None else budget.remaining
    return msgspec.structs.replace(hints, task_tokens=left)


def _edits(managed: Any) -> tuple[dict[str, Any], ...]:
    """What the client wants forgotten; a form that nobody knows wants nothing."""
    match managed:
        case {"edits": [*edits]}:
            return tuple(edit for edit in edits if isinstance(edit, dict))
        case _:
            return ()


def _messages(request: wire.Request) -> tuple[Message, ...]:
    found: list[Message] = []
    if system := content.blocks(request.system, "system"):
        found.append(Message("system", tuple(system)))
    names: dict[str, str] = {}
    for index, message in enumerate(request.messages):
        where = f"messages.{index}"
        role = ROLES.get(message.role)
        if role is None:
            allowed = "Input should be 'user', 'assistant' or 'system'"
            raise bodies.invalid(f"{where}.role", allowed)
        blocks = content.blocks(message.content, f"{where}.content")
        found += _split(role, _named(blocks, names))
    return tuple(found)


def _named(blocks: list[Block], names: dict[str, str]) -> list[Block]:
    """Tool results learn the name of the tool from the call they answer."""
    named: list[Block] = []
    for block in blocks:
        if isinstance(block, ToolCall):
            names[block.id] = block.name
        if isinstance(block, ToolResult) and block.call_id in names:
            named.append(msgspec.structs.replace(block, name=names[block.call_id]))
        else:
            named.append(block)
    return named


def _split(role: Role, blocks: list[Block]) -> list[Message]:
    """One message, but a result inside an assistant message stands in a `tool` message."""
    if role != "assistant" or not any(isinstance(block, ToolResult) for block in blocks):
        return [Message(role, tuple(blocks))]
    found: list[Message] = []
    for block in blocks:
        owner: Role = "tool" if isinstance(block, ToolResult) else "assistant"
        if found and found[-1].role == owner:
            found[-1] = Message(owner, (*found[-1].blocks, block))
        else:
            found.append(Message(owner, (block,)))
    return found


def _tool_choice(request: wire.Request) -> ToolChoice:
    choice = request.tool_choice
    if choice is None:
        return ToolChoice()
    mode: Any = CHOICES.get(choice.type)
    if mode is None:
        raise bodies.invalid("tool_choice.type", "Input should be 'auto', 'any', 'tool' or 'none'")
    if mode == "named" and not choice.name:
        raise bodies.invalid("tool_choice.name", "Field required")
    return ToolChoice(
        mode,
        name=(choice.name or "") if mode == "named" else "",
        parallel=not choice.disable_parallel_tool_use,
    )


def _thinking(request: wire.Request) -> Thinking:
    effort = (request.output_config.effort if request.output_config else None) or ""
    thinking = request.thinking
    if thinking is None:
        return Thinking(effort=effort)
    if thinking.type == "disabled":
        return Thinking("off")
    return Thinking(
        "on",
        effort=effort,
        budget=thinking.budget_tokens if thinking.type == "enabled" else None,
        show=thinking.display != "omitted",
    )


def _output(request: wire.Request) -> OutputFormat:
    config = request.output_config
    shape = (config.format if config else None) or request.output_format
    if shape is None or shape.type != "json_schema":
        return OutputFormat()
    return OutputFormat("json_schema", schema=shape.schema, strict=True)


def _sampling(request: wire.Request) -> Sampling:
    return Sampling(
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        stop=tuple(stop for stop in request.stop_sequences or () if stop),
    )


def _session_of(metadata: wire.Metadata | None) -> str:
    """Claude Code packs its session into `metadata.user_id`; other clients put anything there."""
    user = metadata.user_id if metadata else None
    if not user or not user.startswith("{"):
        return ""
    try:
        return wire.decode_user(user).session_id[: heads.LONGEST]
    except (msgspec.DecodeError, RecursionError):
        return ""
