"""The `cache_control` of content blocks, where one names a ttl.

Every request of some harnesses has breakpoints without a ttl; they ask for nothing that a prefix
cache does not do by itself, so only a body that spells `"ttl"` is looked into.
"""

from __future__ import annotations

from typing import Any

from msgspec import DecodeError, Raw, Struct, json

from protocols.anthropic import wire


class _Marked(Struct):
    cache_control: Any = None


_decode = json.Decoder(_Marked).decode


def ttls(body: bytes, request: wire.Request) -> list[Any]:
    """The cache controls of system, tools and messages; empty where none has a ttl."""
    if b'"ttl"' not in body:
        return []
    found = [tool.cache_control for tool in request.tools or ()]
    blocks: list[Raw] = list(request.system) if isinstance(request.system, list) else []
    for message in request.messages:
        if isinstance(message.content, list):
            blocks += message.content
    return found + [_control(block) for block in blocks if b'"ttl"' in bytes(block)]


def _control(block: Raw) -> Any:
    try:
        return _decode(block).cache_control
    except DecodeError:  # the block is judged elsewhere
        return None
