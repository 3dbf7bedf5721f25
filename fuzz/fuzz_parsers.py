"""Coverage-guided search for outputs that break a law of the parser.

Run: `python fuzz/fuzz_parsers.py -max_total_time=60` (needs atheris). A finding is written to the
current folder as `crash-…`; give that file as the only argument to see it again. FUZZ_FAMILIES
names the families to try; all without it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import atheris

with atheris.instrument_imports(include=["parsers"]):
    from parsers import grammars
    from parsers.detokenizer import Piece
    from parsers.grammar import Grammar
    from parsers.machine import TurnParser

from families import registry
from tests.conformance.verdict import unlawful
from tests.parsers.outputs import BITS, TOOLS
from turns.events import Event, Usage
from turns.frames import Finish
from turns.reply import Reply, fold

NAMES = os.environ.get("FUZZ_FAMILIES", "").split() or sorted(registry.known())
FINISHES: tuple[Finish, ...] = ("stop", "length", "abort")


class Turn:
    """A family's parser from one start state to one end."""

    def __init__(self, grammar: Grammar, tail: str, finish: Finish) -> None:
        self._grammar = grammar
        self._tail = tail
        self._finish: Finish = finish

    def reply(self, frames: list[list[Piece]], *, ids: bool) -> Reply:
        """Raises AssertionError when the events break the order law."""
        parser = TurnParser(
            self._grammar, mint=lambda i, _: f"c{i}", tools=TOOLS, tail=self._tail, ids=ids
        )
        events: list[Event] = [event for frame in frames for event in parser.feed(frame, tokens=0)]
        events += parser.finish(self._finish, Usage())
        if wrong := unlawful(events):
            raise AssertionError(wrong)
        return fold(events)


def one(data: bytes) -> None:
    """One input: a family, where it begins and ends, and what the model writes in pieces."""
    give = atheris.FuzzedDataProvider(data)
    family = registry.get(NAMES[give.ConsumeIntInRange(0, len(NAMES) - 1)])
    special = family.special_tokens
    grammar = grammars.get(family.grammar, special=special)
    tails = ["", *(tail for tail, _ in grammar.tails)]
    tail = tails[give.ConsumeIntInRange(0, len(tails) - 1)]
    turn = Turn(grammar, tail, FINISHES[give.ConsumeIntInRange(0, 2)])
    marks = [marker for _, state in grammar.states for marker, _ in state.on]
    bits = [*BITS, *marks, *special]
    chunks = []
    while give.remaining_bytes():
        known = give.ConsumeBool()
        chunks.append(
            bits[give.ConsumeIntInRange(0, len(bits) - 1)] if known else give.ConsumeUnicode(8)
        )
    output = "".join(chunks)
    cuts = (chunks, list(output), [output])
    _same(family.name, [turn.reply([[Piece(part)] for part in cut], ids=False) for cut in cuts])
    tokens = [Piece(part, special=part in special) for part in chunks]
    cut_tokens = [
        single
        for token in tokens
        for single in ([token] if token.special else map(Piece, token.text))
    ]
    frames = ([[token] for token in tokens], [tokens], [[token] for token in cut_tokens])
    _same(family.name, [turn.reply(frame, ids=True) for frame in frames])


def _same(name: str, replies: list[Reply]) -> None:
    if any(reply != replies[0] for reply in replies):
        raise AssertionError(f"{name}: the reply depends on the cuts: {replies}")


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
