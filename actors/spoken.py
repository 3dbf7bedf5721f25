"""What a reply said, as its client sends it back: the model's blocks, calls by their wire ids."""

from __future__ import annotations

from msgspec.structs import replace

from protocols import ids
from turns.blocks import Reasoning, Text, ToolCall
from turns.reply import Reply
from turns.turn import Turn


def spoken(turn: Turn, reply: Reply) -> list[Text | Reasoning | ToolCall]:
    """What a reply said, its calls under the ids that the client was told."""
    spell = ids.tool_use if turn.api == "messages" else ids.call
    blocks: list[Text | Reasoning | ToolCall] = []
    calls = 0
    for block in reply.blocks:
        if isinstance(block, ToolCall):
            blocks.append(replace(block, id=spell(block.id, turn.id, calls)))
            calls += 1
        elif isinstance(block, Text | Reasoning):
            blocks.append(block)
    return blocks
