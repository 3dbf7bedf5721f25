"""Coverage-guided search for outputs that break a law of the parser.

Run: `python fuzz/fuzz_parsers.py -max_total_time=60` (needs atheris). A finding is written to the
current folder as `crash-…`; give that file as the only argument to see it again. FUZZ_GRAMMARS
names the grammars to try; all without it.
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
    from parsers.machine import TurnParser

from tests.conformance.verdict import unlawful
from tests.parsers.outputs import BITS, TOOLS
from turns.events import Event, Usage
from turns.frames import Finish
from turns.reply import fold

NAMES = os.environ.get("FUZZ_GRAMMARS", "").split() or sorted(grammars.known())
FINISHES: tuple[Finish, ...] = ("stop", "length", "abort")


def events(name: str, tail: str, finish: Finish, chunks: list[str]) -> list[Event]:
    parser = TurnParser(grammars.get(name), mint=lambda i, _: f"c{i}", tools=TOOLS, tail=tail)
    found = [event for chunk in chunks for event in parser.feed([Piece(chunk)])]
    return found + parser.finish(finish, Usage())


def one(data: bytes) -> None:
    """One input: a grammar, where it begins and ends, and what the model writes in pieces."""
    give = atheris.FuzzedDataProvider(data)
    name = NAMES[give.ConsumeIntInRange(0, len(NAMES) - 1)]
    tails = ["", *(tail for tail, _ in grammars.get(name).tails)]
    tail = tails[give.ConsumeIntInRange(0, len(tails) - 1)]
    finish = FINISHES[give.ConsumeIntInRange(0, 2)]
    marks = [marker for _, state in grammars.get(name).states for marker, _ in state.on]
    bits = [*BITS, *marks]
    chunks = []
    while give.remaining_bytes():
        known = give.ConsumeBool()
        chunks.append(
            bits[give.ConsumeIntInRange(0, len(bits) - 1)] if known else give.ConsumeUnicode(8)
        )
    output = "".join(chunks)
    cut = events(name, tail, finish, chunks)
    if wrong := unlawful(cut):
        raise AssertionError(wrong)
    for other in (list(output), [output]):
        again = fold(events(name, tail, finish, other))
        if (again.blocks, again.stop) != (fold(cut).blocks, fold(cut).stop):
            raise AssertionError(f"{name} {tail!r} {finish}: {output!r} depends on its cuts")


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
