"""Footprints: what is kept of a turn to tell, when the next one comes, that its prefix broke.

Digests only, so that every session of live traffic can have one; the doctor (`doctor`) says more,
and needs both turns whole.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import xxhash
from msgspec import Struct

from prompts.canonical import (
    digest,
    has_reasoning,
    message_digest,
    reply_digest,
    said,
    without_reasoning,
)
from prompts.doctor import Cause
from prompts.exact import dumps
from prompts.prompter import Plan
from turns.blocks import Block


class Step(Struct, frozen=True):
    """A message: `bare` of all but reasoning, `thought` of the reasoning too, "" where none."""

    bare: bytes
    thought: bytes = b""
    reply: bool = False
    kept: bool = True
    system: bool = False


class Footprint(Struct, frozen=True):
    """A turn's `size` tokens, their hash, and the conversation that they are of."""

    size: int
    tokens: int
    steps: tuple[Step, ...]
    tools: tuple[bytes, ...]
    arguments: bytes


def footprint(
    plan: Plan, ids: Sequence[int], output: Sequence[int] = (), answer: Sequence[Block] = ()
) -> Footprint:
    """Of a turn that was run; the last token of an output is in no cache."""
    conversation = plan.conversation
    steps = [
        Step(message_digest(message), system=message["role"] == "system")
        if blocks is None
        else _reply(blocks, kept=kept)
        for message, blocks, kept in zip(
            conversation.messages, conversation.replies, conversation.kept, strict=True
        )
    ]
    if output:
        steps.append(_reply(answer, kept=True))
    whole = [*ids, *output[:-1]]
    return Footprint(
        size=len(whole),
        tokens=hashed(whole),
        steps=tuple(steps),
        tools=tuple(digest(dumps(tool).encode()) for tool in plan.tools),
        arguments=digest(dumps(plan.arguments).encode()),
    )


def goes_on(before: Footprint, after: Footprint) -> int:
    """How much of the conversation of `before` the later turn has: 0 is another conversation."""
    if len(after.steps) <= len(before.steps):
        return 0
    pairs = zip(before.steps, after.steps, strict=False)
    return sum(old.bare == new.bare for old, new in pairs if not old.system)


def broken(before: Footprint, after: Footprint, ids: Sequence[int]) -> Cause | None:
    """Why the prompt `ids` of `after` does not begin as `before` was; None if it does."""
    if before.size <= len(ids) and hashed(ids[: before.size]) == before.tokens:
        return None
    if before.tools != after.tools:
        same = sorted(before.tools) == sorted(after.tools)
        return "reordered_tools" if same else "changed_tools"
    for old, new in zip(before.steps, after.steps, strict=False):
        cause = _cause(old, new)
        if cause is not None:
            return cause
    if before.arguments != after.arguments:
        return "changed_thinking"
    if len(after.steps) < len(before.steps):
        return "edited_message"
    return "retokenised_reply" if any(step.reply for step in before.steps) else "unknown"


def hashed(ids: Sequence[int]) -> int:
    return xxhash.xxh3_64_intdigest(array("I", ids).tobytes())


def _cause(old: Step, new: Step) -> Cause | None:
    if old.bare != new.bare:
        if old.system or new.system:
            return "changed_system"
        return "edited_reply" if old.reply and new.reply else "edited_message"
    if not old.thought:
        return None
    if old.kept and not new.kept:
        return "dropped_reasoning"
    if old.thought == new.thought:
        return None
    return "mutated_reasoning" if new.thought else "lost_reasoning"


def _reply(blocks: Sequence[Block], *, kept: bool) -> Step:
    runs = said(blocks)
    bare = reply_digest(without_reasoning(runs), ordered=False)
    thought = reply_digest(runs, ordered=False) if has_reasoning(runs) else b""
    return Step(bare, thought, reply=True, kept=kept)
