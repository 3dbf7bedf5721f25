"""Seals: the opaque token that travels with a span of reasoning and comes back in the history.

Clients drop or downgrade reasoning that has none (Anthropic `signature`, Responses
`encrypted_content`), so every span gets one. What is in it is the business of who gives the
function; without one a seal only names its span.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable

from protocols import ids

PREFIX = "treadle1."

Seal = Callable[[str], str]
"""The seal of a span of reasoning, given its text. Called when the span is over."""


def seal(turn_id: str, index: int) -> str:
    """The seal of the reasoning span that is output block `index` of the turn."""
    name = f"{ids.stem(turn_id)}:{index}".encode()
    return PREFIX + urlsafe_b64encode(name).decode().rstrip("=")
