"""What a reply says, apart from how a client wrote it down again.

Clients re-serialise arguments, rewrite call ids, trim edges, split or join texts, and the Chat API
knows no order between text, reasoning and calls. Two spellings of one reply have one digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any

import msgspec

from prompts.exact import loads
from prompts.traits import Message
from turns.blocks import Block, Reasoning, Text, ToolCall

_SIZE = 16
_ORDER = {"reasoning": 0, "text": 1, "calls": 2}
_encode = msgspec.msgpack.Encoder(order="deterministic").encode

Run = tuple[str, Any]


def digest(*parts: bytes) -> bytes:
    """One digest of several; no part can pass for the end of another."""
    hasher = blake2b(digest_size=_SIZE)
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.digest()


def reply_digest(blocks: Sequence[Block], *, reasoning: bool, ordered: bool) -> bytes:
    """The digest of what a reply says, with or without its reasoning.

    Without `ordered`, only the order of calls among themselves counts.
    """
    said = [
        run for block in blocks if (run := _said(block)) and (reasoning or run[0] != "reasoning")
    ]
    if not ordered:
        said.sort(key=lambda run: _ORDER[run[0]])
    return digest(_encode(list(_runs(said))))


def message_digest(message: Message) -> bytes:
    """The digest of a message that is not a reply; ids and names of calls do not count."""
    return digest(_encode((message["role"], message["content"])))


def has_reasoning(blocks: Iterable[Block]) -> bool:
    """Whether readable reasoning stands among the blocks."""
    return any(_said(block) for block in blocks if isinstance(block, Reasoning))


def _said(block: Block) -> Run | None:
    match block:
        case Reasoning(text=text, redacted=False) if text.strip():
            return "reasoning", text.strip()
        case Text(text=text) if text.strip():
            return "text", text.strip()
        case ToolCall():
            return "calls", (block.name, _value(block))
        case _:
            return None


def _runs(said: Iterable[Run]) -> Iterable[Run]:
    for kind, run in groupby(said, lambda one: one[0]):
        values = [value for _, value in run]
        yield kind, values if kind == "calls" else "".join(values)


def _value(call: ToolCall) -> Any:
    """The arguments as a JSON value: any order of keys, any spelling of a number."""
    if call.kind == "custom":
        return call.arguments
    try:
        return _plain(loads(call.arguments)) if call.arguments.strip() else {}
    except ValueError:
        return call.arguments


def _plain(value: Any) -> Any:
    """JavaScript has one kind of number: 1 and 1.0 are the same, and large ones are rounded."""
    match value:
        case bool() | None | str():
            return value
        case int() | float():
            return _float(value)
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return str(value)


def _float(number: float) -> float | str:
    try:
        return float(number)
    except OverflowError:
        return str(number)
