"""A session played without an engine: what a model says becomes ids, events, a reply, and history.

The model tokenises in its own way (not as an encoder would), and the client writes the reply down
in its own way, as harnesses do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random

from msgspec.structs import replace

from parsers import grammars
from parsers.detokenizer import Detokenizer
from parsers.machine import TurnParser
from parsers.write import write
from prompts.canonical import GAP
from prompts.guard import Guard
from prompts.prompter import Prompt, Prompter
from turns.blocks import Block, Message, Reasoning, Text, ToolCall, ToolResult
from turns.events import Usage
from turns.reply import Reply, fold
from turns.turn import Turn

Said = Reasoning | Text | ToolCall
Client = Callable[[Reply], Message]


def spoken(prompter: Prompter, prompt: Prompt, blocks: Sequence[Said], random: Random) -> list[int]:
    """What an engine generates to say the blocks, its stop token at the end."""
    family, tokenizer = prompter.family, prompter.tokenizer
    guard = Guard(tokenizer.special.values())
    said = [_guarded(block, guard) for block in blocks]
    text = write(grammars.get(family.grammar), said, tail=prompt.tail)
    ids: list[int] = []
    at = 0
    for found in tokenizer.controls.finditer(text):
        ids += _odd(prompter, text[at : found.start()], random)
        ids += tokenizer.encode(found[0], special=True)
        at = found.end()
    ids += _odd(prompter, text[at:], random)
    return ids if ids and ids[-1] in prompt.stop_ids else [*ids, prompt.stop_ids[0]]


def heard(prompter: Prompter, turn: Turn, prompt: Prompt, ids: Sequence[int]) -> Reply:
    """The reply that the parser makes of the ids."""
    family, tokenizer = prompter.family, prompter.tokenizer
    parser = TurnParser(
        grammars.get(family.grammar, special=family.special_tokens),
        mint=lambda index, name: f"call_{name}_{index}",
        tools=turn.tools,
        tail=prompt.tail,
        ids=True,
    )
    reader = Detokenizer(tokenizer.vocab_bytes, tokenizer.special)
    events = parser.feed([*reader.feed(ids), *reader.flush()])
    return fold([*events, *parser.finish("stop", Usage())])


def faithful(reply: Reply) -> Message:
    """A client that keeps everything, but writes arguments as JavaScript does."""
    return Message("assistant", tuple(_rewritten(block) for block in _whole(reply)))


def forgetful(reply: Reply) -> Message:
    """A client that sends no reasoning back, and rewrites ids."""
    kept = (_rewritten(block) for block in _whole(reply) if not isinstance(block, Reasoning))
    return Message("assistant", tuple(_renamed(block) for block in kept))


def chatty(reply: Reply) -> Message:
    """A client of the Chat API: one reasoning, one text, then the calls."""
    blocks = [_rewritten(block) for block in _whole(reply)]
    reasoning = GAP.join(block.text for block in blocks if isinstance(block, Reasoning))
    text = GAP.join(block.text for block in blocks if isinstance(block, Text))
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    return Message("assistant", (Reasoning(reasoning), Text(text), *calls))


def results(reply: Reply, text: str) -> list[Message]:
    """A tool's answers to the calls of a reply, or a user's next question."""
    calls = [block for block in reply.blocks if isinstance(block, ToolCall)]
    if not calls:
        return [Message("user", (Text(text),))]
    return [Message("tool", (ToolResult(call.id, (Text(text),)),)) for call in calls]


def _whole(reply: Reply) -> list[Said]:
    return [block for block in reply.blocks if isinstance(block, Reasoning | Text | ToolCall)]


def _rewritten(block: Said) -> Block:
    if not isinstance(block, ToolCall):
        return block
    value = json.loads(block.arguments)
    return replace(block, arguments=json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _renamed(block: Block) -> Block:
    return replace(block, id=block.id.replace("_", "")) if isinstance(block, ToolCall) else block


def _guarded(block: Said, guard: Guard) -> Said:
    if isinstance(block, ToolCall):
        return replace(block, arguments=guard.spellings(block.arguments))
    return replace(block, text=guard.spellings(block.text))


def _odd(prompter: Prompter, text: str, random: Random) -> list[int]:
    """A tokenisation of ordinary text that no encoder gives: cut anywhere, each piece by itself."""
    ids: list[int] = []
    while text:
        cut = random.randint(1, 9)
        ids += prompter.tokenizer.encode(text[:cut], special=False)
        text = text[cut:]
    return ids
