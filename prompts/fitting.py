"""Shorter conversations: what stays of one whose client would rather lose its beginning than fail.

Instructions at the head stay, so does the last thing that was asked; a call never loses its result.
"""

from __future__ import annotations

from collections.abc import Sequence

from turns.blocks import Message, ToolResult

HEAD = ("system", "developer")


def shortened(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """The conversation without ever more of its oldest messages, the longest first.

    First whole exchanges go, from the oldest on; then steps of the last exchange, behind its
    question.
    """
    start = next((at for at, one in enumerate(messages) if one.role not in HEAD), len(messages))
    head, rest = tuple(messages[:start]), messages[start:]
    asks = [at for at, message in enumerate(rest) if _asks(message)]
    found = [(*head, *rest[at:]) for at in asks if at]
    if asks:
        last = asks[-1]
        steps = [at for at in range(last + 2, len(rest)) if _steps(rest, at)]
        found += [(*head, rest[last], *rest[at:]) for at in steps]
    return found


def _asks(message: Message) -> bool:
    return message.role == "user" and not any(isinstance(b, ToolResult) for b in message.blocks)


def _steps(rest: Sequence[Message], at: int) -> bool:
    """Whether a reply begins here: what stands before it is answered."""
    return rest[at].role == "assistant" and rest[at - 1].role != "assistant"
