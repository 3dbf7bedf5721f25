"""What one delta of four characters costs each API's encoder, in µs of CPU.

Run: `python benchmarks/bench_encode.py`. The bar is 5 µs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from protocols.registry import APIS
from turns.events import (
    Event,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
    TurnStarted,
)

REQUESTS = {
    "messages": b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}',
    "chat": b'{"model":"m","messages":[{"role":"user","content":"x"}]}',
    "responses": b'{"model":"m","input":"x"}',
}
KINDS: dict[str, tuple[list[Event], list[Event]]] = {
    "text": ([TextDelta("Hi")], [TextDelta(" tok")]),
    "text-é": ([TextDelta("Hi")], [TextDelta(" tök")]),
    "reasoning": ([ReasoningDelta("Hm")], [ReasoningDelta(" tok")]),
    "arguments": ([ToolCallStarted(0, "call_1", "f")], [ToolArgumentsDelta(0, '"a":')]),
}
STEPS = 20_000


def cost(api: str, opening: list[Event], step: list[Event]) -> float:
    """µs per call of `encode` with one delta."""
    protocol = APIS[api]  # type: ignore[index]
    turn = protocol.decode(REQUESTS[api], {}, turn_id="turn_1")
    encoder = protocol.encoder(turn, created=0, model="m")
    encoder.encode([TurnStarted(9), *opening])
    begun = process_time()
    for _ in range(STEPS):
        encoder.encode(step)
    return (process_time() - begun) / STEPS * 1e6


def main() -> None:
    print(f"{'µs per delta':12}", *(f"{kind:>10}" for kind in KINDS))
    for api in APIS:
        costs = (min(cost(api, *events) for _ in range(7)) for events in KINDS.values())
        print(f"{api:12}", *(f"{value:10.2f}" for value in costs))


if __name__ == "__main__":
    main()
