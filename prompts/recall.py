"""Under which keys the ledger remembers a reply.

A reply is named by the conversation before it and by what it says (`canonical`), so that all keys
of a turn are known before any is looked up, and one round trip finds them.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence

from msgspec import Struct

from prompts.canonical import (
    Run,
    digest,
    has_reasoning,
    message_digest,
    reply_digest,
    said,
    without_reasoning,
)
from prompts.messages import Conversation
from turns.blocks import Reasoning, Text, ToolCall
from turns.reply import Reply


class Memory(Struct, frozen=True):
    """A reply to look up: the message it would stand for, and keys, the better one first."""

    message: int
    keys: tuple[str, ...]


class Context(Struct, frozen=True):
    """What keys depend on beside the conversation.

    `model` separates vocabularies; `thinking` is whether the turn reasons; `ordered` is false for
    an API that does not know the order of a reply's blocks.
    """

    model: bytes
    thinking: bool
    ordered: bool


def memories(conversation: Conversation, context: Context) -> list[Memory]:
    """The replies of the conversation that may be remembered and that the policy keeps."""
    found: list[Memory] = []
    chain = digest(context.model)
    last = len(conversation.messages) - 1
    for place, message in enumerate(conversation.messages):
        blocks = conversation.replies[place]
        if blocks is None:
            chain = digest(chain + message_digest(message))
            continue
        runs = said(blocks)
        if conversation.kept[place] and not (place == last and conversation.open):
            found.append(Memory(place, _keys(chain, runs, context)))
        chain = _behind(chain, runs)
    return found


def names(conversation: Conversation, reply: Reply, context: Context) -> tuple[str, ...]:
    """The keys under which the reply to this conversation is remembered; () if it must not be.

    What was cut, failed, or ended by a stop string is not what the client will send back.
    """
    blocks = [block for block in reply.blocks if isinstance(block, Text | Reasoning | ToolCall)]
    if len(blocks) < len(reply.blocks) or not blocks or reply.failed or conversation.open:
        return ()
    if reply.stop is None or reply.stop == "stop_sequence":
        return ()
    chain = digest(context.model)
    for message, told in zip(conversation.messages, conversation.replies, strict=True):
        if told is None:
            chain = digest(chain + message_digest(message))
        else:
            chain = _behind(chain, said(told))
    runs = said(blocks)
    keys: list[str] = []
    for ordered in (True, False):
        if has_reasoning(runs):
            keys.append(_full(chain, runs, ordered=ordered))
        keys.append(_bare(chain, runs, thinking=context.thinking, ordered=ordered))
    return tuple(dict.fromkeys(keys))


def recalled(
    wanted: Sequence[Memory], found: Mapping[str, Sequence[int]]
) -> dict[int, Sequence[int]]:
    """The ids of the remembered replies, by the message they stand for."""
    known: dict[int, Sequence[int]] = {}
    for memory in wanted:
        ids = next((found[key] for key in memory.keys if found.get(key)), None)
        if ids is not None:
            known[memory.message] = ids
    return known


def _keys(chain: bytes, runs: Sequence[Run], context: Context) -> tuple[str, ...]:
    """A client that sends reasoning back means that reasoning; else either kind of turn will do."""
    if has_reasoning(runs):
        return (_full(chain, runs, ordered=context.ordered),)
    modes = (context.thinking, not context.thinking)
    return tuple(_bare(chain, runs, thinking=mode, ordered=context.ordered) for mode in modes)


def _full(chain: bytes, runs: Sequence[Run], *, ordered: bool) -> str:
    return _name(chain, b"full", reply_digest(runs, ordered=ordered))


def _bare(chain: bytes, runs: Sequence[Run], *, thinking: bool, ordered: bool) -> str:
    """The name for a client that loses reasoning; what one mode said is not what the other did."""
    kind = b"lost" if thinking else b"none"
    return _name(chain, kind, reply_digest(without_reasoning(runs), ordered=ordered))


def _name(chain: bytes, kind: bytes, reply: bytes) -> str:
    return urlsafe_b64encode(digest(chain + kind + reply)).decode().rstrip("=")


def _behind(chain: bytes, runs: Sequence[Run]) -> bytes:
    """The chain does not know reasoning: clients that lose it shall find what follows it."""
    return digest(chain + reply_digest(without_reasoning(runs), ordered=False))
