"""Chat messages as blocks.

Absent, null and empty content are the same: clients differ in which they send, and the prompt must
not. Reasoning comes first, then text, then calls: Chat has no other order to offer, except that a
list of reasoning segments interleaves with the calls (segment i stands before call i).
"""

from __future__ import annotations

import msgspec

from protocols import bodies, documents, images
from protocols.chat import details, wire
from turns.blocks import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def messages(found: list[wire.WireMessage]) -> tuple[Message, ...]:
    """All messages of a request, in order."""
    names: dict[str, str] = {}
    read = []
    last_legacy = ""
    for index, message in enumerate(found):
        where = f"messages.{index}"
        role = ROLES.get(message.role)
        if role is None:
            expected = ", ".join(f"'{name}'" for name in ROLES)
            raise bodies.invalid(f"{where}.role", f"Input should be one of {expected}")
        blocks = content(message, f"{where}.content")
        if role == "assistant":
            calls = _calls(message, index)
            names |= {call.id: call.name for call in calls}
            if message.function_call is not None:
                last_legacy = calls[-1].id
            blocks = _assistant(message, blocks, calls, where)
        elif role == "tool":
            call_id = message.tool_call_id or last_legacy
            blocks = _result(message, blocks, call_id, names.get(call_id, ""))
        read.append(Message(role, tuple(blocks)))
    return tuple(read)


def content(message: wire.WireMessage, where: str) -> list[Block]:
    """The parts of a message's content; an empty text is none."""
    if isinstance(message.content, str):
        return [Text(message.content)] if message.content else []
    found: list[Block] = []
    for index, raw in enumerate(message.content or ()):
        found += _part(raw, f"{where}.{index}")
    return found


def _part(raw: msgspec.Raw, where: str) -> list[Block]:
    if bodies.opening(raw) == b'"':
        text = bodies.value(raw, where)
        return [Text(text)] if text else []
    part = bodies.part(raw, wire.decode_part, where)
    if part.type in ("text", "input_text", "output_text") and part.text is not None:
        return [Text(part.text)] if part.text else []
    if part.type in ("image_url", "input_image") and part.image_url:
        url = part.image_url if isinstance(part.image_url, str) else part.image_url.url
        return [images.from_url(url)]
    if part.type == "refusal" and part.refusal:
        return [Text(part.refusal)]
    file = part.file or wire.WireFile()
    read = documents.of_file(file.file_data, file.filename or "") if file.file_data else []
    return read or [Opaque(part.type, bodies.value(raw, where))]


def _assistant(
    message: wire.WireMessage, blocks: list[Block], calls: list[ToolCall], where: str
) -> list[Block]:
    segments = _reasoning(message, where)
    if message.refusal and not blocks:
        blocks = [Text(message.refusal)]
    if len(segments) <= 1 or not calls:
        return [*segments, *blocks, *calls]
    # Segments of interleaved thinking: the text, where there is any, follows the first of them.
    found: list[Block] = [segments[0], *blocks]
    for index, call in enumerate(calls):
        found += [*segments[index : index + 1], call] if index else [call]
    return found + segments[len(calls) :]


def _reasoning(message: wire.WireMessage, where: str) -> list[Block]:
    given = message.reasoning_content or message.reasoning
    plain = [given] if isinstance(given, str) else given or []
    found = details.read(message.reasoning_details or (), f"{where}.reasoning_details")
    if any(block.text for block in found) or not plain:
        return list(found)
    seal = found[0].seal if found else ""  # sealed apart from its text: they are one span
    return [Reasoning(plain[0], seal=seal), *map(Reasoning, plain[1:])]


def _calls(message: wire.WireMessage, index: int) -> list[ToolCall]:
    calls = []
    for nth, call in enumerate(message.tool_calls or ()):
        call_id = call.id or f"call_{index}_{nth}"
        if call.custom is not None:
            calls.append(ToolCall(call_id, call.custom.name, call.custom.input, kind="custom"))
        elif call.function is not None:
            arguments = call.function.arguments or "{}"
            calls.append(ToolCall(call_id, call.function.name, arguments))
        else:
            where = f"messages.{index}.tool_calls.{nth}.function"
            raise bodies.invalid(where, "Field required")
    if message.function_call is not None:
        old = message.function_call
        calls.append(ToolCall(f"call_{index}", old.name, old.arguments or "{}"))
    return calls


def _result(message: wire.WireMessage, blocks: list[Block], call_id: str, name: str) -> list[Block]:
    seen = tuple(block for block in blocks if isinstance(block, Text | Image | Document))
    hidden = [block for block in blocks if isinstance(block, Opaque)]
    return [ToolResult(call_id, seen, name=name or message.name or ""), *hidden]
