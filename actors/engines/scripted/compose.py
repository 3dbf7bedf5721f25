"""From a plan to a script: the family's wire syntax, then token ids.

How a family writes a reply and how its tokenizer encodes text come from outside (`Wire`), so this
file knows no family.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, chain

from actors.engines.scripted.reply import Filler, Plan, Said
from actors.engines.scripted.scenario import Rule
from actors.engines.scripted.script import Pace, Script, until_stop
from turns.blocks import Reasoning, Text
from turns.frames import Job, ParseSpec

Writer = Callable[[ParseSpec, Sequence[Said]], str]
"""Writes blocks as the family's model would, going on from where `spec.tail` ends."""

Encoder = Callable[[str], list[int]]
"""Token ids of model output: special tokens spelled out become their ids, nothing is added."""

# Words that are one token in every vocabulary in use, so that their number can be met exactly.
LINE = (
    "the model reads all of the words in this line and then it goes on to write some more of them "
    "so that there is enough text to look at while the time of each step is being taken by us"
)
WORDS = tuple(LINE.split())
MEMO = 256


class Wire:
    """A family's way to write and a tokenizer's way to encode, with what they gave remembered."""

    def __init__(self, write: Writer, encode: Encoder) -> None:
        self.write = write
        # Benchmarks say the same thing a thousand times; nobody changes the lists.
        self.encode = lru_cache(MEMO)(encode)
        self.words = lru_cache(MEMO)(self._words)

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def within(self, text: str, tokens: int) -> str:
        """The longest start of a text, cut between words, that is at most `tokens` tokens."""
        ends = [at for at, char in enumerate(text) if char.isspace() and at] + [len(text)]
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high + 1) // 2
            if self.count(text[: ends[middle - 1]]) <= tokens:
                low = middle
            else:
                high = middle - 1
        return text[: ends[low - 1]] if low else ""

    def _words(self, tokens: int) -> str:
        text = " ".join(WORDS[at % len(WORDS)] for at in range(tokens))
        return text if self.count(text) <= tokens else self.within(text, tokens)


def script(plan: Plan, job: Job, wire: Wire, *, room: int) -> Script:
    """The script of a job. `room` is the most tokens that it can say, for what never ends."""
    rule = plan.rule
    cuts: list[int] | None = None
    if plan.pieces is not None:
        parts = [wire.encode(one.text) if one.ids is None else one.ids for one in plan.pieces]
        ids = list(chain.from_iterable(parts))
        cuts = list(accumulate(map(len, parts)))
    elif plan.endless is not None:
        ids = wire.encode(plan.endless)
        ids = ids * (room // max(len(ids), 1) + 1)
    else:
        raw = plan.raw
        ids = wire.encode(wire.write(job.spec, _blocks(plan, job, wire)) if raw is None else raw)
    fault = rule.fault()
    if fault is not None:
        after = fault[1]
        if cuts is not None:
            cuts = cuts[:after]
            after = cuts[-1] if cuts else 0
        ids = ids[:after]
    elif rule.finish == "stop" and rule.stop_token and job.stop_ids:
        ids = [*ids, job.stop_ids[0]]
        cuts = cuts if cuts is None else [*cuts, len(ids)]
    size = rule.tokens.per_step
    if size > 1 and cuts is None:
        cuts = [*range(size, len(ids), size), len(ids)]
    whole = Script(
        ids=ids,
        finish=rule.finish,
        cuts=cuts,
        fault=fault[0] if fault else None,
        pace=_pace(rule),
        cached=rule.cached_tokens,
    )
    return until_stop(whole, job.stop_ids)


def _blocks(plan: Plan, job: Job, wire: Wire) -> list[Said]:
    """The blocks to write: fillers filled, reasoning left out when it is off, cut to its budget."""
    quiet = job.conversation is not None and job.conversation.thinking.mode == "off"
    left = sys.maxsize if job.thinking_budget is None else job.thinking_budget
    blocks: list[Said] = []
    for part in plan.parts:
        block = part
        if isinstance(block, Filler):
            text = wire.words(block.tokens)
            block = Reasoning(text) if block.reasoning else Text(text)
        if isinstance(block, Reasoning):
            if quiet or left <= 0:
                continue
            if left < sys.maxsize:
                block = Reasoning(wire.within(block.text, left))
                if not block.text:
                    continue
                left -= wire.count(block.text)
        blocks.append(block)
    return blocks


def _pace(rule: Rule) -> Pace | None:
    tokens = rule.tokens
    if not tokens.step_ms and not tokens.first_after_ms:
        return None
    return Pace(tokens.step_ms / 1000, tokens.first_after_ms / 1000)
