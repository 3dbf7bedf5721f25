"""What a token costs to parse, by grammar: reasoning and one long call, fed token by token.

Run: `python benchmarks/bench_parsers.py [--quick]`. The last line says the figures and the bars;
exit 1 when a bar is missed. Where vLLM is installed its own parser runs beside ours. Deciles are
of the call's argument tokens, so that growth shows and not the step from reasoning to arguments.
Times are CPU time, the best of some rounds, since a shared machine only ever adds to them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msgspec import Struct

from parsers import grammars
from parsers.detokenizer import Piece
from parsers.grammar import Calls
from parsers.machine import TurnParser
from parsers.write import write
from turns.blocks import Reasoning, ToolCall
from turns.events import ToolArgumentsDelta, Usage
from turns.turn import Tool

try:
    from benchmarks import vllm_parsers
except ImportError:
    vllm_parsers = None  # type: ignore[assignment]

TAGS = ("hermes", "qwen3_coder")
PER_TOKEN, GROWTH, SPEEDUP = 5.0, 1.2, 100.0
LINE = '    if count < limit and name != "":\n        return {name: [value + 1, "x"]}  # keep\n'
THOUGHT = "The file has to hold the new rule, so I write it whole and then run the tests. "
TOOL = Tool(
    "write_file",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    },
)
TOKEN = re.compile(r"\n+|[ \t]?[^\W\d_]{1,6}|[ \t]?\d{1,3}|[ \t]?[^\w\s]{1,2}|[ \t]+|.", re.DOTALL)


class Cost(Struct):
    """µs per token: over all, in the first and in the last tenth of the call; and correctness."""

    tokens: int
    mean: float
    first: float
    last: float
    prompt: bool

    @property
    def growth(self) -> float:
        return self.last / self.first


def output(name: str, tokens: int) -> str:
    """A quarter of reasoning, then one call that writes a file, about this many tokens in all."""
    thought = THOUGHT * max(1, tokens // 4 // len(TOKEN.findall(THOUGHT)))
    content = LINE * max(1, tokens * 3 // 4 // len(TOKEN.findall(LINE)))
    arguments = json.dumps({"path": "src/rule.py", "content": content})
    call = ToolCall("functions.write_file:0", "write_file", arguments)
    grammar = grammars.get(name)
    thinks = [Reasoning(thought.strip())] if grammar.reasoning else []
    return write(grammar, [*thinks, call])


def cost(name: str, tokens: int, rounds: int) -> Cost:
    text = output(name, tokens)
    pieces = [[Piece(token)] for token in TOKEN.findall(text)]
    skip = len(TOKEN.findall(text[: text.rindex("src/rule.py")])) + 8
    size = (len(pieces) - skip - 8) // 10
    edges = [0, skip, skip + size, skip + 9 * size, skip + 10 * size, len(pieces)]
    best = [float("inf")] * (len(edges) - 1)
    for _ in range(rounds):
        feed = _parser(name).feed
        for n in range(len(edges) - 1):
            part = pieces[edges[n] : edges[n + 1]]
            begun = process_time()
            for piece in part:
                feed(piece)
            best[n] = min(best[n], process_time() - begun)
    return Cost(
        len(pieces),
        sum(best) / len(pieces) * 1e6,
        best[1] / size * 1e6,
        best[3] / size * 1e6,
        prompt(name, pieces),
    )


def prompt(name: str, pieces: list[list[Piece]]) -> bool:
    """Whether each string's first characters come out in the feed that brings them."""
    parser = _parser(name)
    seen = ""
    came = ""
    for piece in pieces:
        came += piece[0].text
        events = parser.feed(piece)
        seen += "".join(e.json for e in events if isinstance(e, ToolArgumentsDelta))
        if came.endswith("src/rule.py"):
            parser.finish("abort", Usage())
            return seen.endswith("src/rule.py")
    return False


def _parser(name: str) -> TurnParser:
    return TurnParser(grammars.get(name), mint=lambda index, _: f"call_{index}", tools=(TOOL,))


def main(quick: bool) -> int:
    sizes = (1000, 4000) if quick else (1000, 4000, 16000)
    rounds = 3 if quick else 7
    names = [name for name, grammar in grammars.known().items() if _written(grammar.calls)]
    missed: list[str] = []
    shown: list[str] = []
    print("grammar             tokens  µs/token  first 10 %  last 10 %  growth")
    for name in sorted(names, key=lambda name: (name not in TAGS, name)):
        for size in sizes:
            found = cost(name, size, rounds)
            print(
                f"{name:18}{found.tokens:8}{found.mean:10.2f}{found.first:12.2f}"
                f"{found.last:11.2f}{found.growth:8.2f}"
            )
            if size == sizes[-1]:
                missed += _missed(name, found)
                if name in TAGS:
                    shown.append(f"{name} {found.mean:.2f} µs x{found.growth:.2f}")
    if vllm_parsers is None:
        shown.append("vLLM not installed")
    else:
        rival = vllm_parsers.cost(output("qwen3_coder", 4000), TOOL, TOKEN)
        ours = cost("qwen3_coder", 4000, rounds).mean
        shown.append(f"vLLM {rival:.0f} µs, {rival / ours:.0f}x")
        missed += [f"only {rival / ours:.0f}x vLLM"] if rival / ours < SPEEDUP else []
    bars = f"bars: {PER_TOKEN} µs, growth {GROWTH} (tags), {SPEEDUP:.0f}x vLLM, first delta at once"
    print("; ".join(shown), "|", bars, "|", "MISSED " + ", ".join(missed) if missed else "ok")
    return 1 if missed else 0


def _written(calls: Calls | None) -> bool:
    return calls is not None and calls.spelling is not None


def _missed(name: str, found: Cost) -> list[str]:
    missed = [] if found.prompt else [f"{name}: first argument delta is late"]
    if name in TAGS and found.mean > PER_TOKEN:
        missed.append(f"{name}: {found.mean:.2f} µs per token")
    if name in TAGS and found.growth > GROWTH:
        missed.append(f"{name}: last tenth {found.growth:.2f} times the first")
    return missed


if __name__ == "__main__":
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--quick", action="store_true", help="fewer rounds and sizes")
    sys.exit(main(args.parse_args().quick))
