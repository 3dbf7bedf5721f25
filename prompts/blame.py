"""Which message a template refused, and which of its fields: found by rendering less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prompts.messages import Conversation
from prompts.template import TemplateError
from prompts.traits import Message
from turns.errors import InvalidRequestError

_BLANKS: dict[str, Any] = {
    "content": "",
    "tool_calls": [],
    "reasoning_content": "",
    "reasoning": "",
    "thinking": "",
    "name": "",
}

Render = Callable[[list[Message]], str]


def blamed(err: TemplateError, conversation: Conversation, render: Render) -> InvalidRequestError:
    """The error for the client. Costs some renderings, on this path only."""
    messages = conversation.messages
    place = _first_refused(messages, render)
    if place is None:
        return InvalidRequestError(
            f"the chat template refused the messages: {err}", param="messages"
        )
    where = conversation.origin[place]
    if field := _refused_field(messages[: place + 1], render):
        where += f".{field}"
    return InvalidRequestError(f"{where}: the chat template refused it: {err}", param=where)


def _first_refused(messages: list[Message], render: Render) -> int | None:
    """The message with which the conversation stops being accepted."""
    if not messages:
        return None
    good, bad = 0, len(messages)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _passes(messages[:middle], render):
            good = middle
        else:
            bad = middle
    return bad - 1


def _refused_field(messages: list[Message], render: Render) -> str:
    *head, last = messages
    for field, blank in _BLANKS.items():
        if last.get(field) and _passes([*head, last | {field: blank}], render):
            return field
    return ""


def _passes(messages: list[Message], render: Render) -> bool:
    try:
        render(messages)
    except TemplateError:
        return False
    return True
