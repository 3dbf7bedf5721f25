"""The `cache_control` of content blocks, where one names a ttl; inside results of tools too.

Every request of some harnesses has breakpoints without a ttl; they ask for nothing that a prefix
cache does not do by itself, so only a body that spells `"ttl"` is looked into.
"""

from __future__ import annotations

from typing import Any

from msgspec import DecodeError, Raw, Struct, json

from protocols.anthropic import wire


class _Marked(Struct):
    type: Any = None
    cache_control: Any = None
    content: Any = None


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
    for block in blocks:
        if b'"ttl"' in bytes(block):
            found += _controls(block)
    return found


def _controls(block: Raw) -> list[Any]:
    try:
        marked = _decode(block)
    except (DecodeError, RecursionError):  # the block is judged elsewhere
        return []
    found = [marked.cache_control]
    if marked.type == "tool_result" and isinstance(marked.content, list):
        inner = [part for part in marked.content if isinstance(part, dict)]
        found += [part.get("cache_control") for part in inner]
    return found
