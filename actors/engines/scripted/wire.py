"""The scripted engine's mouth: blocks in a family's native syntax, text in a model's token ids.

What a block holds is data: where it merely spells a control token it is guarded, so that the
engine says it in ordinary tokens, as the parser must be able to rely on. What a scenario gives as
`raw` or `deltas` is not guarded: there a spelled control token is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from actors.engines.scripted.compose import Encoder, Writer
from actors.engines.scripted.reply import Said
from families.family import Family
from parsers.grammar import Grammar
from parsers.write import write
from prompts.guard import Guard
from prompts.tokenizer import Tokenizer
from prompts.tools import CUSTOM_ARGUMENT
from turns.blocks import Reasoning, Text, ToolCall
from turns.frames import ParseSpec


def native(tokenizer: Tokenizer, family: Family, grammar: Grammar) -> tuple[Writer, Encoder]:
    """The engine's `write` and `encode` for a model: its family's syntax, its tokenizer's ids.

    The writer raises ValueError for a block that the family cannot say.
    """
    guard = Guard(tokenizer.special.values())

    def written(spec: ParseSpec, blocks: Sequence[Said]) -> str:
        if not _reasons(family, grammar, spec.tail):
            blocks = [block for block in blocks if not isinstance(block, Reasoning)]
        rows = (_shown(block, at, guard) for at, block in enumerate(blocks))
        return write(grammar, rows, tail=spec.tail)

    return written, tokenizer.encode_guarded


def _reasons(family: Family, grammar: Grammar, tail: str) -> bool:
    """Whether the model may reason here: not where the prompt has closed its reasoning already."""
    if family.thinking.default == "none" or grammar.reasoning is None:
        return False
    return not tail.rstrip().endswith(grammar.reasoning.closers)


def _shown(block: Said, at: int, guard: Guard) -> Said:
    """The block as the model sees and spells it."""
    match block:
        case Text(text=text):
            return Text(guard.spellings(text))
        case Reasoning(text=text):
            return Reasoning(guard.spellings(text))
        case ToolCall(name=name, arguments=arguments):
            if block.kind == "custom":
                arguments = msgspec.json.encode({CUSTOM_ARGUMENT: arguments}).decode()
            # The families that write ids themselves (Kimi) number their calls like this.
            return ToolCall(f"functions.{name}:{at}", name, guard.spellings(arguments))
