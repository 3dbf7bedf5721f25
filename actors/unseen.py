"""What a request said and nobody acted on: named in a response header and counted.

That is what the decoder did not honour, and what the model cannot see of the history.
"""

from __future__ import annotations

from collections.abc import Iterable

from turns.blocks import Message, Opaque, Reasoning
from turns.turn import Turn

HEADER = "x-treadle-ignored"
OURS = "treadle"
"""How every seal of ours begins, of whatever version."""

LONGEST = 1000
"""Characters of the header; proxies give up at a few thousand for all headers together."""


def unseen(turn: Turn) -> list[str]:
    """The names, each once, in the order in which they came."""
    ignored: list[str] = turn.echo.get("ignored") or []
    return list(dict.fromkeys([*ignored, *_hidden(turn.messages)]))


def header(names: Iterable[str]) -> dict[str, str]:
    """The header that lists them; what does not fit is counted. Nothing to list, no header."""
    shown: list[str] = []
    size = 0
    found = [_plain(name) for name in names]
    for name in found:
        size += len(name) + 2
        if size > LONGEST:
            shown.append(f"+{len(found) - len(shown)}")
            break
        shown.append(name)
    return {HEADER: ", ".join(shown)} if shown else {}


def _hidden(messages: Iterable[Message]) -> Iterable[str]:
    for index, message in enumerate(messages):
        for block in message.blocks:
            if isinstance(block, Opaque):
                yield f"messages.{index}:{block.kind}"
            elif isinstance(block, Reasoning) and not block.text and _foreign(block.seal):
                yield f"messages.{index}:sealed_reasoning"


def _foreign(seal: str) -> bool:
    """Whether a seal is somebody else's: nobody here can read what it closes."""
    return bool(seal) and not seal.startswith(OURS)


def _plain(name: str) -> str:
    """A client chose these names: nothing in them may end the header or begin another item."""
    return "".join(c if c.isascii() and c.isprintable() and c != "," else "?" for c in name)[:100]
