"""Seals: the opaque token that travels with a span of reasoning and comes back in the history.

Clients drop or downgrade reasoning that has none (Anthropic `signature`, Responses
`encrypted_content`), so every span gets one. For now it only names the span.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode

from protocols import ids

PREFIX = "treadle1."


def seal(turn_id: str, index: int) -> str:
    """The seal of the reasoning span that is output block `index` of the turn."""
    name = f"{ids.stem(turn_id)}:{index}".encode()
    return PREFIX + urlsafe_b64encode(name).decode().rstrip("=")
