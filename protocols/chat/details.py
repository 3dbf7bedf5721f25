"""`reasoning_details`: spans of reasoning with their seals, as OpenRouter and its clients know it.

Chat itself has no place for a seal, so a client that speaks this dialect (a `reasoning` object in
its request) gets one entry a span, when the span is over; it sends them back as they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from protocols import bodies
from protocols.chat import wire
from protocols.seals import Seal, seal
from turns.blocks import Reasoning
from turns.turn import Turn


def read(given: Sequence[msgspec.Raw], where: str) -> list[Reasoning]:
    """The spans of a message. Pieces of one span that follow each other (a stream that was kept
    chunk by chunk) have the same index, and are joined.
    """
    found: list[Reasoning] = []
    last: int | None = None
    for at, raw in enumerate(given):
        part = bodies.part(raw, wire.decode_detail, f"{where}.{at}")
        text = part.text or part.summary or ""
        own = part.signature or part.data or ""
        if not text and not own:
            continue
        if found and part.index is not None and part.index == last:
            text, own = found[-1].text + text, own or found[-1].seal
            found.pop()
        found.append(Reasoning(text, seal=own, redacted=bool(own) and not text))
        last = part.index
    return found


class Details:
    """Makes the entries of one turn."""

    def __init__(self, turn: Turn, closing: Seal | None) -> None:
        self._id = turn.id
        self._closing = closing
        self._pieces: list[str] = []
        self._count = 0

    def add(self, text: str) -> None:
        """The next piece of the span that is open."""
        self._pieces.append(text)

    def ended(self) -> dict[str, Any]:
        """The entry of the span that is over."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._count += 1
        return self._entry(text, self._count - 1)

    def whole(self, spans: Sequence[str]) -> list[dict[str, Any]]:
        """The entries of a reply that is not streamed."""
        return [self._entry(text, index) for index, text in enumerate(spans)]

    def _entry(self, text: str, index: int) -> dict[str, Any]:
        own = seal(self._id, index) if self._closing is None else self._closing(text)
        return {"type": "reasoning.text", "text": text, "signature": own, "index": index}
