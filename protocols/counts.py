"""Counting the tokens of a request before it is sent: Messages and Responses, by path.

A counter decodes the same body as its API does, so that what is counted is what would be run; the
count itself comes from the renderer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from protocols import sse
from protocols.anthropic import decode as anthropic
from protocols.protocol import Protocol
from protocols.registry import APIS
from protocols.responses import decode as responses
from turns.turn import Turn


class Counter(Struct, frozen=True):
    """One counting endpoint; errors are spelled by its `api`."""

    api: Protocol
    read: Callable[..., Turn]
    fields: dict[str, Any]

    def decode(self, body: bytes, headers: Mapping[str, str], *, turn_id: str) -> Turn:
        """The request as the turn whose prompt is to be counted."""
        return self.read(body, headers, turn_id=turn_id)

    def body(self, tokens: int) -> bytes:
        """The answer."""
        return sse.dumps(self.fields | {"input_tokens": tokens})


COUNTERS = {
    "/v1/messages/count_tokens": Counter(APIS["messages"], anthropic.decode_count, {}),
    "/v1/responses/input_tokens": Counter(
        APIS["responses"], responses.decode, {"object": "response.input_tokens"}
    ),
}
