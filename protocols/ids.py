"""Ids: minted once, from the id of the turn, so that a retry or a second fold gives the same."""

from __future__ import annotations

import re

_FOREIGN = re.compile(r"[^A-Za-z0-9]")


def stem(turn_id: str) -> str:
    """The part of a turn's id that all its public ids carry."""
    return _FOREIGN.sub("", turn_id.removeprefix("turn_"))


def message(turn_id: str) -> str:
    return f"msg_{stem(turn_id)}"


def response(turn_id: str) -> str:
    return f"resp_{stem(turn_id)}"


def completion(turn_id: str) -> str:
    return f"chatcmpl-{stem(turn_id)}"


def item(prefix: str, turn_id: str, index: int) -> str:
    """The id of the output item at `index`: `fc_<stem>02`."""
    return f"{prefix}_{stem(turn_id)}{index:02d}"


def call(call_id: str, turn_id: str, index: int) -> str:
    """The id of a tool call: the model's or parser's own where there is one."""
    return call_id or f"call_{stem(turn_id)}{index:02d}"


def tool_use(call_id: str, turn_id: str, index: int) -> str:
    """The same id as Anthropic spells it. An id that the model itself made is left alone."""
    minted = call(call_id, turn_id, index)
    return f"toolu_{minted[5:]}" if minted.startswith("call_") else minted


def mcp_tool_use(call_id: str, turn_id: str, index: int) -> str:
    """The same for a call that is answered inside the turn."""
    minted = call(call_id, turn_id, index)
    return f"mcptoolu_{minted[5:]}" if minted.startswith("call_") else minted
