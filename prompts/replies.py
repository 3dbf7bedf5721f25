"""An assistant message as a template sees it, its blocks in their true order.

A template knows three fields: reasoning, then content, then calls. A reply in that order goes into
them. Any other order (think, call, think, call) is kept by writing what the fields cannot say as
trusted text in the content: reasoning between its markers, calls as the template itself writes
them, taken from a rendering of just these calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from prompts.exact import loads, marked
from prompts.guard import HOLE, Guard
from prompts.memo import Memo
from prompts.spelling import Spelling
from prompts.template import ChatTemplate, TemplateError
from prompts.tools import CUSTOM_ARGUMENT
from prompts.traits import Message, Traits
from turns.blocks import Block, Reasoning, Text, ToolCall

_SLOT = f"{HOLE}w{HOLE}"
_CHARACTERS = 4_000_000  # of arguments that are remembered as objects


class Group(Struct):
    """A stretch of a reply in the order that template fields have."""

    reasoning: str = ""
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)


def groups(blocks: Sequence[Block]) -> list[Group]:
    """The reply cut where its order is not reasoning, text, calls.

    No block is moved or dropped, but for blank text between calls: the template's glue.
    """
    found = [Group()]
    for block in blocks:
        last = found[-1]
        match block:
            case Reasoning(text=text) if text and not block.redacted:
                if last.text or last.calls:
                    found.append(Group(text))
                else:
                    last.reasoning = f"{last.reasoning}\n\n{text}" if last.reasoning else text
            case Text(text=text) if text.strip() or (text and not (last.calls or last.reasoning)):
                if last.calls:
                    found.append(Group(text=text))
                else:
                    last.text = f"{last.text}\n{text}" if last.text else text
            case ToolCall():
                last.calls.append(block)
            case _:
                pass
    return [_trimmed(group, after=at > 0) for at, group in enumerate(found)]


def _trimmed(group: Group, *, after: bool) -> Group:
    """Edge white space next to a marker goes: the template writes its own."""
    if group.reasoning or after:
        group.text = group.text.lstrip()
    if group.calls:
        group.text = group.text.rstrip()
    return group


class Replies:
    """Writes assistant messages for one template."""

    def __init__(
        self, template: ChatTemplate, traits: Traits, guard: Guard, spelling: Spelling
    ) -> None:
        self._template = template
        self._traits = traits
        self._guard = guard
        self._spelling = spelling
        self._memo: Memo[bytes, str] = Memo(4096)
        self._objects: Memo[str, Any] = Memo(_CHARACTERS)

    def message(
        self, blocks: Sequence[Block], *, keep: bool, holes: list[str], arguments: Mapping[str, Any]
    ) -> Message:
        """The reply as one template message.

        Without `keep` its reasoning is left out. Trusted text is appended to `holes` and stands in
        the content by its number.
        """
        if not keep:
            blocks = [block for block in blocks if not isinstance(block, Reasoning)]
        parts = groups(blocks)
        if len(parts) == 1 and self._carries(parts[0]):
            return self._plain(parts[0], holes=holes)
        first = parts[0]
        message: Message = {"role": "assistant", "content": ""}
        if first.reasoning and self._traits.reasoning:
            message[self._traits.reasoning] = self._guard(first.reasoning)
            first.reasoning = ""
        pieces = (self._written(part, arguments) for part in parts)
        message["content"] = hole(holes, "\n".join(filter(None, pieces)))
        return message

    def call(self, call: ToolCall) -> Message:
        """A call as templates know it, its arguments an object wherever they are one."""
        return {
            "id": self._guard(call.id),
            "type": "function",
            "function": {
                "name": self._guard(call.name),
                "arguments": self._arguments(call),
            },
        }

    def _carries(self, group: Group) -> bool:
        """Whether the template's fields can hold the group whole."""
        traits = self._traits
        if not group.calls:
            return True
        return (
            traits.calls
            and (traits.talks or not group.text)
            and (traits.parallel or len(group.calls) == 1)
        )

    def _plain(self, group: Group, *, holes: list[str]) -> Message:
        content = self._guard(group.text)
        message: Message = {"role": "assistant", "content": content}
        if group.reasoning and self._traits.reasoning:
            message[self._traits.reasoning] = self._guard(group.reasoning)
        elif group.reasoning:
            message["content"] = hole(holes, self._spelling.thought(group.reasoning)) + content
        if group.calls:
            message["tool_calls"] = [self.call(call) for call in group.calls]
        return message

    def _written(self, group: Group, arguments: Mapping[str, Any]) -> str:
        """The group as text."""
        thought = self._spelling.thought(group.reasoning) if group.reasoning else ""
        text = self._guard(group.text)
        if not group.calls:
            return thought + text
        calls = self._calls(group.calls, arguments)
        return thought + (text + calls if text else calls.lstrip("\n"))

    def _calls(self, calls: Sequence[ToolCall], arguments: Mapping[str, Any]) -> str:
        """What stands behind a text for these calls: the template's words, if it has any."""
        key = msgspec.json.encode((calls, arguments))
        known = self._memo.get(key)
        if known is None:
            carried = self._carries(Group(text="x", calls=list(calls)))
            known = self._rendered(calls, arguments) if carried else None
            if known is None:
                known = "\n" + self._spelling.calls(calls)
            self._memo.put(key, known)
        return known

    def _rendered(self, calls: Sequence[ToolCall], arguments: Mapping[str, Any]) -> str | None:
        """What the template writes for the calls behind a text; None if it cannot be cut out."""
        head: Message = {"role": "user", "content": "x"}
        bare: Message = {"role": "assistant", "content": _SLOT}
        full: Message = bare | {"tool_calls": [self.call(call) for call in calls]}
        try:
            without, having = (
                self._template.render([head, message], generate=False, arguments=arguments)
                for message in (bare, full)
            )
        except TemplateError:
            return None
        _, slot, written = having.partition(_SLOT)
        end = without.partition(_SLOT)[2]
        return written.removesuffix(end) if slot and written.endswith(end) else None

    def _arguments(self, call: ToolCall) -> Any:
        if self._traits.arguments == "text":
            return self._spelling.arguments(call)
        if call.kind == "custom":
            return {CUSTOM_ARGUMENT: self._guard(call.arguments)}
        if not call.arguments.strip():
            return {}
        known = self._objects.get(call.arguments)
        if known is not None:
            return known
        try:
            value = loads(call.arguments)
        except ValueError:
            value = None
        if isinstance(value, dict):
            made = marked(self._guard.value(value))
            self._objects.put(call.arguments, made, len(call.arguments) + 64)
            return made
        raw = self._guard(call.arguments)
        return raw if self._traits.raw_arguments else {"arguments": raw}


def hole(holes: list[str], text: str) -> str:
    """Keeps trusted text out of the template's sight; gives what stands for it until then."""
    holes.append(text)
    return f"{HOLE}{len(holes) - 1}{HOLE}"
