"""What a reply says, apart from how a client wrote it down again.

Clients re-serialise arguments, rewrite call ids, trim edges, split or join texts, and the Chat API
knows no order between text, reasoning and calls. Two spellings of one reply have one digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from prompts.exact import loads
from prompts.traits import Message
from turns.blocks import Block, Reasoning, Text, ToolCall

SIZE = 16
"""Bytes of a digest."""
GAP = "\n\n"
"""What the Chat API's encoder puts between two texts, or two spans, that were not together."""

_BLANK = re.compile(r"\s*\n\s*\n\s*")
_ORDER = {"reasoning": 0, "text": 1, "calls": 2}
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(strict=True).decode
_kind = itemgetter(0)

Run = tuple[str, Any]


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=SIZE).digest()


def said(blocks: Iterable[Block]) -> list[Run]:
    """What the blocks say, kind by kind, in their order; blank text says nothing."""
    found: list[Run] = []
    for block in blocks:
        match block:
            case ToolCall():
                found.append(("calls", (block.name, _value(block))))
            case Reasoning(redacted=True):
                pass
            case Reasoning() | Text() if stripped := block.text.strip():
                found.append(("text" if isinstance(block, Text) else "reasoning", stripped))
            case _:
                pass
    return found


def has_reasoning(runs: Iterable[Run]) -> bool:
    return any(kind == "reasoning" for kind, _ in runs)


def without_reasoning(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run[0] != "reasoning"]


def reply_digest(runs: Sequence[Run], *, ordered: bool) -> bytes:
    """The digest of a reply. Without `ordered`, only the order of calls among themselves counts,
    and how far apart texts and spans are written does not.
    """
    runs = [_joined(kind, run) for kind, run in groupby(runs, _kind)]
    if not ordered:
        apart = sorted(runs, key=lambda run: _ORDER[run[0]])
        runs = [_joined(kind, run, GAP) for kind, run in groupby(apart, _kind)]
    return digest(_encode(runs))


def message_digest(message: Message) -> bytes:
    """The digest of a message that is not a reply; ids and names of calls do not count."""
    return digest(_encode((message["role"], message["content"])))


def _joined(kind: str, run: Iterable[Run], gap: str = "") -> Run:
    values = [value for _, value in run]
    if kind == "calls":
        return kind, [call for value in values for call in value] if gap else values
    text = gap.join(values)
    if gap:
        text = "".join(text.split()) if kind == "reasoning" else _BLANK.sub(GAP, text)
    return kind, text


def _value(call: ToolCall) -> Any:
    """The arguments as a JSON value: any order of keys, any spelling of a number."""
    text = call.arguments
    if call.kind == "custom":
        return text
    try:
        return _plain(_decode(text))
    except (msgspec.DecodeError, RecursionError):
        return _odd(text)


def _odd(text: str) -> Any:
    """What only Python reads as JSON (NaN, lone surrogates), or nobody."""
    try:
        return repr(_plain(loads(text))) if text.strip() else {}
    except ValueError:
        return text


def _plain(value: Any) -> Any:
    """JavaScript has one kind of number: 1 and 1.0 are the same, and large ones are rounded."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    if kind is list:
        return [_plain(item) for item in value]
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return str(value)
