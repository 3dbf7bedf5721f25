"""Compaction: a conversation that its own model sums up, so that a client may go on with less.

A `compaction_trigger` at the end of the input asks the model for a summary; the reply is exactly
one `compaction` item that carries it, and the item, sent back later, stands for all before it.
The seal keeps clients from reading meaning into the text; it is not a secret from them.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Sequence

import msgspec

from protocols.protocol import Encoder
from protocols.seals import PREFIX
from turns.blocks import Text
from turns.events import (
    Event,
    Stop,
    TextDelta,
    TextEnded,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from turns.reply import Reply

SUMMARY = f"{PREFIX}summary."
PROMPT = (
    "Sum up this conversation for whoever goes on with it without having read it. Say what the "
    "user wants, what was decided and done, which files, commands and results matter (verbatim "
    "where the wording counts), what failed, and what is to be done next. Call no tool; write "
    "only the summary."
)
HEAD = "Summary of the conversation before this point:\n\n"


def sealed(summary: str) -> str:
    """A summary as `encrypted_content`."""
    return SUMMARY + urlsafe_b64encode(summary.encode()).decode()


def unsealed(content: str) -> str | None:
    """The way back; None for what is not ours."""
    if not content.startswith(SUMMARY):
        return None
    try:
        return urlsafe_b64decode(content.removeprefix(SUMMARY)).decode()
    except (Error, ValueError):
        return None


class CompactionEncoder:
    """Lets only the text of a turn through to its encoder, as one block and at least one."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._written = False

    @property
    def finished(self) -> bool:
        return self._encoder.finished

    def encode(self, events: Sequence[Event]) -> bytes:
        return self._encoder.encode([kept for event in events for kept in self._kept(event)])

    def keepalive(self) -> bytes:
        return self._encoder.keepalive()

    def whole(self, reply: Reply) -> tuple[int, bytes]:
        texts = [block.text for block in reply.blocks if isinstance(block, Text)]
        blocks = (Text("".join(texts)),)
        stop = _stop(reply.stop) if reply.stop else None
        return self._encoder.whole(msgspec.structs.replace(reply, blocks=blocks, stop=stop))

    def _kept(self, event: Event) -> list[Event]:
        match event:
            case TurnStarted() | TurnFailed():
                return [event]
            case TextDelta():
                self._written = True
                return [event]
            case TurnEnded():
                ended = msgspec.structs.replace(event, stop=_stop(event.stop))
                return [*([] if self._written else [TextDelta("")]), TextEnded(), ended]
            case _:
                return []


def _stop(stop: Stop) -> Stop:
    return "end" if stop == "tool_use" else stop
