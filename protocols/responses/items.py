"""Input items as messages.

Reasoning, text and calls that follow each other become one assistant message; every other item
ends it. What the model cannot see becomes `Opaque`; nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from protocols import bodies, documents, images
from protocols.responses import compaction, wire
from protocols.responses.declared import Declared
from protocols.tool_servers import BESIDE, answered, flat_name
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
    ToolReference,
    ToolResult,
)

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}
TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


FIXED: tuple[tuple[str, Any], ...] = (("type", "exec"), ("env", {}))


class Items:
    """Reads the items of one request in order."""

    def __init__(self, declared: Declared) -> None:
        self.messages: list[Message] = []
        self.compact = False
        self.listed: dict[str, tuple[dict[str, Any], ...]] = {}
        self.approved: list[str] = []
        self._declared = declared
        self._assistant: list[Block] = []
        self._first: list[Block] = []
        self._names: dict[str, str] = {}

    def read(self, given: str | list[msgspec.Raw] | None) -> tuple[Message, ...]:
        """The whole input as messages."""
        if isinstance(given, str):
            self._add("user", [Text(given)] if given else [])
        for index, raw in enumerate(() if isinstance(given, str) else given or ()):
            where = f"input.{index}"
            item = bodies.part(raw, wire.decode_item, where)
            READERS.get(item.type, Items.opaque)(self, item, raw, where)
        self._flush()
        if self._first:
            self._append("user", [])
        return tuple(self.messages)

    def _add(self, role: Role, blocks: list[Block]) -> None:
        self._flush()
        self._append(role, blocks)

    def _flush(self) -> None:
        if self._assistant:
            self._append("assistant", self._assistant)
            self._assistant = []

    def _append(self, role: Role, blocks: list[Block]) -> None:
        self.messages.append(Message(role, (*self._first, *blocks)))
        self._first = []

    def opaque(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """Kept beside what it followed, never in a message of its own that would be rendered."""
        hidden = Opaque(item.type, bodies.value(raw, where))
        if self._assistant:
            self._assistant.append(hidden)
        elif self.messages:
            last = self.messages[-1]
            self.messages[-1] = Message(last.role, (*last.blocks, hidden))
        else:
            self._first.append(hidden)

    def message(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        role = ROLES.get(item.role)
        if role is None:
            expected = ", ".join(f"'{name}'" for name in ROLES)
            raise bodies.invalid(f"{where}.role", f"Input should be one of {expected}")
        blocks = content(item.content, f"{where}.content")
        if role == "assistant":
            self._assistant += blocks
        else:
            self._add(role, blocks)

    def reasoning(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """The raw text where it was sent, else the summary; the seal goes with it."""
        parts = content(item.content, f"{where}.content") or [
            block
            for index, part in enumerate(item.summary or ())
            for block in _part(part, f"{where}.summary.{index}")
        ]
        text = "\n\n".join(part.text for part in parts if isinstance(part, Text))
        seal = item.encrypted_content or ""
        if not text and not seal:
            return  # Codex sends the empty shell of a span back
        self._assistant.append(Reasoning(text, seal=seal, redacted=bool(seal) and not text))

    def call(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        name, namespace = item.name or "", item.namespace or ""
        if not name:
            raise bodies.invalid(f"{where}.name", "Field required")
        if item.server_label:
            name = flat_name(item.server_label, name)
        self._called(item, name, _json(item.arguments, f"{where}.arguments"), namespace)

    def custom(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        name, namespace = item.name or "", item.namespace or ""
        if not name:
            raise bodies.invalid(f"{where}.name", "Field required")
        self._called(item, name, item.input or "", namespace, custom=True)

    def search(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        self._called(item, "tool_search", _json(item.arguments, f"{where}.arguments"))

    def action(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """`local_shell_call`, `shell_call`, `computer_call`, `apply_patch_call`."""
        given = item.action if bodies.given(item.action) else item.operation
        arguments = _json(given, f"{where}.action")
        if item.type == "local_shell_call":
            arguments = _said(arguments)
        self._called(item, item.type.removesuffix("_call"), arguments)

    def _called(
        self,
        item: wire.WireItem,
        name: str,
        arguments: str,
        namespace: str = "",
        *,
        custom: bool = False,
    ) -> None:
        call_id = item.call_id or item.id or ""
        flat = self._declared.flat(namespace, name)
        self._names[call_id] = flat
        made = ToolCall(call_id, flat, arguments, "custom" if custom else "function")
        self._assistant.append(made)

    def output(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        seen, hidden = _output_content(item.output, f"{where}.output")
        failed = item.type == "apply_patch_call_output" and item.status == "failed"
        self._result(item.call_id or item.id or "", seen, hidden, is_error=failed)

    def _result(
        self,
        call_id: str,
        seen: list[Text | Image | Document | ToolReference],
        hidden: list[Block],
        *,
        is_error: bool = False,
    ) -> None:
        name = self._names.get(call_id, "")
        result = ToolResult(call_id, tuple(seen), is_error=is_error, name=name)
        self._add("tool", [result, *hidden])

    def found(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """What a client's tool search found: shown here, so the head of the prompt stays."""
        names = self._declared.declare(item.tools or [], f"{where}.tools", deferred=True)
        self._result(item.call_id or "", [ToolReference(name) for name in names], [])

    def mcp(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """A call that some server ran by itself: the call, and what came back. Where it had to be
        asked about, the call is known already.
        """
        failed = bodies.given(item.error)
        if failed:
            seen, hidden = _error_content(item.error, f"{where}.error")
        else:
            seen, hidden = _output_content(item.output, f"{where}.output")
        asked = item.approval_request_id or ""
        if asked not in self._names:
            results = self._beside(item.id or "")
            self.call(item, raw, where)
            self._flush()
            self.messages += results
            self._result(item.call_id or item.id or "", seen, hidden, is_error=failed)
            return
        if asked in self.approved:
            self.approved.remove(asked)
        self._flush()
        result = ToolResult(asked, tuple(seen), is_error=failed, name=self._names[asked])
        self.messages = list(answered(self.messages, result))

    def _beside(self, item_id: str) -> list[Message]:
        """Take back the results behind the message of calls that this call belongs into."""
        results: list[Message] = []
        if not item_id.endswith(BESIDE) or self._assistant:
            return results
        while self.messages and self.messages[-1].role == "tool":
            results.insert(0, self.messages.pop())
        if self.messages and self.messages[-1].role == "assistant":
            self._assistant = list(self.messages.pop().blocks)
        return results

    def mcp_tools(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """A server's tools as they were listed: it need not be asked again."""
        if item.server_label and item.tools is not None and not bodies.given(item.error):
            self.listed[item.server_label] = tuple(item.tools)
        else:
            self.opaque(item, raw, where)

    def consent(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """The client's answer to a call that had to be asked about."""
        asked = item.approval_request_id or ""
        if asked not in self._names:  # of a turn that is read before what it goes on from
            self.opaque(item, raw, where)
            return
        if item.approve:
            self.approved.append(asked)
            return
        told = f"The user did not allow this call. {item.reason or ''}".strip()
        self._result(asked, [Text(told)], [], is_error=True)

    def additional(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """Tools that come as an item: at the head they are ordinary, later they are shown there."""
        later = bool(self.messages or self._assistant)
        names = self._declared.declare(item.tools or [], f"{where}.tools", deferred=later)
        if later:
            self._add("developer", [ToolReference(name) for name in names])

    def trigger(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        self.compact = True
        self._add("user", [Text(compaction.PROMPT)])

    def summary(self, item: wire.WireItem, raw: msgspec.Raw, where: str) -> None:
        """A summary of ours, in place of all that it sums up; one from elsewhere cannot be read."""
        summary = compaction.unsealed(item.encrypted_content or "")
        if summary is None:
            self.opaque(item, raw, where)
        else:
            self._add("user", [Text(compaction.HEAD + summary)])


def content(given: msgspec.Raw, where: str) -> list[Block]:
    """The parts of an item's content; an empty text is none."""
    if not bodies.given(given):
        return []
    parts = bodies.part(given, wire.decode_content, where)
    if isinstance(parts, str):
        return [Text(parts)] if parts else []
    return [
        block for index, raw in enumerate(parts or ()) for block in _part(raw, f"{where}.{index}")
    ]


def _part(raw: msgspec.Raw, where: str) -> list[Block]:
    part = bodies.part(raw, wire.decode_part, where)
    if part.type in TEXTS and part.text is not None:
        return [Text(part.text)] if part.text else []
    if part.type == "refusal" and part.refusal:
        return [Text(part.refusal)]
    if part.type in ("input_image", "computer_screenshot") and part.image_url:
        return [images.from_url(part.image_url)]
    if part.type == "input_file" and part.file_url:
        return [Document(url=part.file_url, title=part.filename or "")]
    read = documents.of_file(part.file_data, part.filename or "") if part.file_data else []
    return read or [Opaque(part.type, bodies.value(raw, where))]


def _json(given: msgspec.Raw, where: str) -> str:
    """Arguments as JSON text: sent as a string (kept as it is) or as an object."""
    if not bodies.given(given):
        return "{}"
    value = bodies.value(given, where)
    return (value or "{}") if isinstance(value, str) else bodies.text_of(given)


def _said(arguments: str) -> str:
    """What the model itself wrote of a `local_shell_call`: its fixed fields are left out."""
    value = msgspec.json.decode(arguments)
    if not isinstance(value, dict) or value.get("type") != "exec":
        return arguments
    kept = {name: part for name, part in value.items() if (name, part) not in FIXED}
    return msgspec.json.encode(kept).decode()


def _output_content(
    given: msgspec.Raw, where: str
) -> tuple[list[Text | Image | Document | ToolReference], list[Block]]:
    """A tool's output: a string, a list of parts, or an object that is shown as its JSON."""
    if not bodies.given(given):
        return [], []
    listed = bodies.opening(given) in (b'"', b"[")
    seen: list[Text | Image | Document | ToolReference] = []
    hidden: list[Block] = []
    for block in content(given, where) if listed else _object(given, where):
        if isinstance(block, Text | Image | Document | ToolReference):
            seen.append(block)
        elif isinstance(block, Opaque) and "stdout" in (block.value or {}):
            seen.append(Text(_shell_output(block.value)))
        else:
            hidden.append(block)
    return seen, hidden


def _error_content(
    given: msgspec.Raw, where: str
) -> tuple[list[Text | Image | Document | ToolReference], list[Block]]:
    """What a failed call said, as the model read it."""
    value = bodies.value(given, where)
    match value:
        case {"content": [*parts]}:
            texts = [part.get("text") for part in parts if isinstance(part, dict)]
            return [Text(text) for text in texts if isinstance(text, str)], []
        case {"content": str(text)} | {"message": str(text)}:
            return [Text(text)], []
        case _:
            return _output_content(given, where)


def _object(given: msgspec.Raw, where: str) -> list[Block]:
    """An output that is one object: a screenshot, or something to show as its JSON."""
    value = bodies.value(given, where)
    if isinstance(value, dict) and value.get("type") == "computer_screenshot":
        return _part(given, where)
    return [Text(bodies.text_of(given))]


def _shell_output(value: dict[str, object]) -> str:
    """One entry of a `shell_call_output`."""
    lines = [str(value.get("stdout") or ""), str(value.get("stderr") or "")]
    outcome = value.get("outcome")
    if isinstance(outcome, dict):
        lines.append(" ".join(str(word) for word in outcome.values()))
    return "\n".join(line for line in lines if line)


Reader = Callable[[Items, wire.WireItem, msgspec.Raw, str], None]
READERS: dict[str, Reader] = {
    "message": Items.message,
    "reasoning": Items.reasoning,
    "function_call": Items.call,
    "function_call_output": Items.output,
    "custom_tool_call": Items.custom,
    "custom_tool_call_output": Items.output,
    "tool_search_call": Items.search,
    "tool_search_output": Items.found,
    "local_shell_call": Items.action,
    "local_shell_call_output": Items.output,
    "shell_call": Items.action,
    "shell_call_output": Items.output,
    "apply_patch_call": Items.action,
    "apply_patch_call_output": Items.output,
    "computer_call": Items.action,
    "computer_call_output": Items.output,
    "mcp_call": Items.mcp,
    "mcp_approval_request": Items.call,
    "mcp_approval_response": Items.consent,
    "mcp_list_tools": Items.mcp_tools,
    "additional_tools": Items.additional,
    "compaction_trigger": Items.trigger,
    "compaction": Items.summary,
    "compaction_summary": Items.summary,
}
