"""What of the past a client or an operator wants forgotten: old reasoning, old tool results.

Anthropic's `context_management` edits are honoured as they were received; what they do not say, or
say in a way nobody knows, changes nothing. A call always keeps its result, if only as a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from prompts.messages import asks
from prompts.stabilise import Placed
from turns.blocks import Block, Reasoning, Text, ToolCall, ToolResult
from turns.turn import Turn

CLEARED = Text("[This result was cleared to save context.]")
_TRIGGER, _KEEP = 100_000, 3  # Anthropic's defaults


class Edits(Struct, frozen=True):
    """What to forget.

    `thinking_turns`: reasoning of so many replies stays, None for all. `tool_uses`: results of so
    many calls stay, None for all, once `trigger_tokens` or `trigger_uses` are exceeded and at least
    `at_least` tokens are freed; `spared` tools keep theirs; `inputs` clears arguments too.
    """

    thinking_turns: int | None = None
    tool_uses: int | None = None
    trigger_tokens: int | None = None
    trigger_uses: int | None = None
    at_least: int = 0
    spared: frozenset[str] = frozenset()
    inputs: bool = False


def edits_of(turn: Turn, *, thinking_turns: int | None) -> Edits:
    """The edits of a turn; `thinking_turns` is the operator's wish, where the client has none."""
    edits = Edits(thinking_turns=thinking_turns)
    for edit in turn.edits:
        kind = str(edit.get("type", ""))
        if kind.startswith("clear_thinking"):
            asked = _count(edit.get("keep"), "thinking_turns")
            edits = replace(edits, thinking_turns=asked if asked is not None else thinking_turns)
        elif kind.startswith("clear_tool_uses"):
            tokens, uses = (_count(edit.get("trigger"), of) for of in ("input_tokens", "tool_uses"))
            keep = _count(edit.get("keep"), "tool_uses")
            edits = replace(
                edits,
                tool_uses=_KEEP if keep is None else keep,
                trigger_tokens=_TRIGGER if tokens is None and uses is None else tokens,
                trigger_uses=uses,
                at_least=_count(edit.get("clear_at_least"), "input_tokens") or 0,
                spared=frozenset(map(str, edit.get("exclude_tools") or ())),
                inputs=bool(edit.get("clear_tool_inputs")),
            )
    return edits


def forgotten(messages: Sequence[Placed], *, before: int, turns: int | None) -> list[Placed]:
    """Without the reasoning that stands before message `before` or in all but the last replies.

    A client that sends no reasoning back may have had some with any of its replies.
    """
    replies = [at for at, one in enumerate(messages) if one.message.role == "assistant"]
    kept = [at for at in replies if _thinks(messages[at])] or replies
    limit = before
    if turns is not None and len(kept) > turns:
        limit = max(limit, kept[len(kept) - turns] if turns else len(messages))
    return [
        _forgot(one) if at < limit and one.message.role == "assistant" else one
        for at, one in enumerate(messages)
    ]


def cleared(
    messages: Sequence[Placed],
    edits: Edits,
    *,
    tokens: Callable[[], int],
    size: Callable[[str], int],
) -> list[Placed]:
    """With old tool results cleared as the edits say; counts tokens only where it must."""
    uses = [
        block for one in messages for block in one.message.blocks if isinstance(block, ToolCall)
    ]
    if edits.tool_uses is None or len(uses) <= edits.tool_uses:
        return list(messages)
    over = edits.trigger_uses is not None and len(uses) > edits.trigger_uses
    if not over and (edits.trigger_tokens is None or tokens() <= edits.trigger_tokens):
        return list(messages)
    old = uses[: len(uses) - edits.tool_uses]
    gone = {call.id for call in old if call.name not in edits.spared}
    if edits.at_least and _freed(messages, gone, size) < edits.at_least:
        return list(messages)
    return [
        _with(one, tuple(_clear(b, gone, edits) for b in one.message.blocks)) for one in messages
    ]


def last_question(turn: Turn) -> int:
    """The index of the last message in which a user says something.

    What the model thought before it can be forgotten when a session's cache has gone cold.
    """
    for at in range(len(turn.messages) - 1, -1, -1):
        if asks(turn.messages[at]):
            return at
    return 0


def _count(said: Any, of: str) -> int | None:
    match said:
        case {"type": kind, "value": int(value)} if kind == of:
            return max(0, value)
        case _:
            return None


def _thinks(placed: Placed) -> bool:
    return any(isinstance(block, Reasoning) for block in placed.message.blocks)


def _forgot(placed: Placed) -> Placed:
    blocks = tuple(b for b in placed.message.blocks if not isinstance(b, Reasoning))
    return Placed(replace(placed.message, blocks=blocks), placed.where, forgot=True)


def _with(placed: Placed, blocks: tuple[Block, ...]) -> Placed:
    if blocks == placed.message.blocks:
        return placed
    return replace(placed, message=replace(placed.message, blocks=blocks))


def _clear(block: Block, gone: set[str], edits: Edits) -> Block:
    match block:
        case ToolResult(call_id=call) if call in gone:
            return replace(block, content=(CLEARED,))
        case ToolCall(id=call, kind="function") if call in gone and edits.inputs:
            return replace(block, arguments="{}")
        case _:
            return block


def _freed(messages: Sequence[Placed], gone: set[str], size: Callable[[str], int]) -> int:
    texts = (
        part.text
        for one in messages
        for block in one.message.blocks
        if isinstance(block, ToolResult) and block.call_id in gone
        for part in block.content
        if isinstance(part, Text)
    )
    return sum(map(size, texts))
