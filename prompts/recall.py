"""Under which keys the ledger remembers a reply.

A reply is named by the conversation before it and by what it says (`canonical`), so that all keys
of a turn are known before any is looked up, and one round trip finds them.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence

from msgspec import Struct

from prompts.canonical import digest, has_reasoning, message_digest, reply_digest
from prompts.messages import Conversation
from prompts.traits import Message
from turns.blocks import Block
from turns.reply import CutCall, Reply


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
    for place, message in enumerate(conversation.messages):
        blocks = conversation.replies[place]
        last = place == len(conversation.messages) - 1
        if blocks is not None and conversation.kept[place] and not (last and conversation.open):
            found.append(Memory(place, _keys(chain, blocks, context)))
        chain = _next(chain, message, blocks)
    return found


def names(conversation: Conversation, reply: Reply, context: Context) -> tuple[str, ...]:
    """The keys under which the reply to this conversation is remembered; () if it must not be.

    What was cut, failed, or ended by a stop string is not what the client will send back.
    """
    whole = not any(isinstance(block, CutCall) for block in reply.blocks)
    if not whole or not reply.blocks or reply.failed or reply.stop == "stop_sequence":
        return ()
    if reply.stop is None or conversation.open:
        return ()
    chain = digest(context.model)
    for place, message in enumerate(conversation.messages):
        chain = _next(chain, message, conversation.replies[place])
    blocks = [block for block in reply.blocks if not isinstance(block, CutCall)]
    keys: list[str] = []
    for ordered in (True, False):
        if has_reasoning(blocks):
            keys.append(_full(chain, blocks, ordered=ordered))
        keys.append(_bare(chain, blocks, thinking=context.thinking, ordered=ordered))
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


def _keys(chain: bytes, blocks: Sequence[Block], context: Context) -> tuple[str, ...]:
    """A client that sends reasoning back means that reasoning; else either kind of turn will do."""
    if has_reasoning(blocks):
        return (_full(chain, blocks, ordered=context.ordered),)
    return tuple(
        _bare(chain, blocks, thinking=thinking, ordered=context.ordered)
        for thinking in (context.thinking, not context.thinking)
    )


def _full(chain: bytes, blocks: Sequence[Block], *, ordered: bool) -> str:
    return _name(chain, b"full", reply_digest(blocks, reasoning=True, ordered=ordered))


def _bare(chain: bytes, blocks: Sequence[Block], *, thinking: bool, ordered: bool) -> str:
    kind = b"bare, thinking" if thinking else b"bare"
    return _name(chain, kind, reply_digest(blocks, reasoning=False, ordered=ordered))


def _name(*parts: bytes) -> str:
    return urlsafe_b64encode(digest(*parts)).decode().rstrip("=")


def _next(chain: bytes, message: Message, blocks: Sequence[Block] | None) -> bytes:
    """The chain does not know reasoning: clients that lose it shall find what follows it."""
    if blocks is None:
        return digest(chain, message_digest(message))
    return digest(chain, reply_digest(blocks, reasoning=False, ordered=False))
