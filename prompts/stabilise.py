"""What stands in front of a reusable prefix must not change without meaning.

Only what means nothing to the model is taken out, and only constant text is moved: both are
settings. Everything else is for the prefix doctor to report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from turns.blocks import Message, Text
from turns.turn import Turn

# `key=value;` pairs on one line; a text that follows on the same line is the client's
_BILLING = re.compile(
    r"\s*x-anthropic-billing-header:(?:(?:[ \t]*[\w.-]+=[^;\s]*;?)+|[^\n]*)[ \t]*(?:\r?\n)*"
)
_SYSTEM = frozenset({"system", "developer"})


class Placed(Struct, frozen=True):
    """A message and where the client put it: `messages.2`, `system`.

    `forgot` is a reply without its reasoning, which nothing shall bring back.
    """

    message: Message
    where: str
    forgot: bool = False

    @property
    def is_system(self) -> bool:
        return self.message.role in _SYSTEM


def placed(turn: Turn) -> list[Placed]:
    """The messages of a turn, each with the name of its field in the client's request."""
    return [Placed(message, _where(turn, at)) for at, message in enumerate(turn.messages)]


def _where(turn: Turn, at: int) -> str:
    if turn.api == "responses":
        return "input"
    # Messages has its system text apart, and counts its messages without it
    apart = int(turn.api == "messages" and turn.messages[0].role == "system")
    return f"messages.{at - apart}" if at >= apart else "system"


def without_billing(messages: Sequence[Placed]) -> list[Placed]:
    """Without Claude Code's billing header: a hash of the first prompt, at the head of all."""
    return [_without_header(placed) if placed.is_system else placed for placed in messages]


def _without_header(placed: Placed) -> Placed:
    blocks = placed.message.blocks
    if not any(isinstance(block, Text) and _BILLING.match(block.text) for block in blocks):
        return placed
    kept = (_headless(block) if isinstance(block, Text) else block for block in blocks)
    full = tuple(block for block in kept if block != Text(""))
    return Placed(Message(placed.message.role, full), placed.where)


def _headless(block: Text) -> Text:
    header = _BILLING.match(block.text)
    return Text(block.text[header.end() :]) if header else block


def hoisted(messages: Sequence[Placed]) -> list[Placed]:
    """With system messages from before the first reply ahead of the first prompt.

    A harness's constant environment, sent behind the prompt, is then shared between sessions. A
    later system message stays where it is: moving it would rewrite the head of the prompt.
    """
    reply = next(
        (at for at, placed in enumerate(messages) if placed.message.role == "assistant"), None
    )
    head = list(messages[:reply])
    tail = list(messages[reply:]) if reply is not None else []
    return sorted(head, key=lambda placed: not placed.is_system) + tail
