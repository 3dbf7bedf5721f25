"""How long a step takes, as arithmetic: shared by the engine and by simulations."""

from __future__ import annotations

import sys

from msgspec import Struct


class Timing(Struct, frozen=True, forbid_unknown_fields=True):
    """The pace of an engine.

    A step lasts `step_ms` for what a step costs however full it is, `turn_ms` for each turn that
    decodes in it, and the time its prompt tokens need at `prefill_tokens_per_s`: as on a real
    engine with chunked prefill, a long prompt slows the turns that decode beside it, and tokens
    that the prefix cache holds cost nothing. 0 stands for "as fast as possible" in all three.
    `prefill_chunk` is the most prompt tokens of one step, so that no step lasts for ever.
    """

    step_ms: float = 0.0
    turn_ms: float = 0.0
    prefill_tokens_per_s: float = 0.0
    prefill_chunk: int = 2048

    def __post_init__(self) -> None:
        for name in ("step_ms", "turn_ms", "prefill_tokens_per_s"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is below 0")
        if self.prefill_chunk < 1:
            raise ValueError("prefill_chunk must be at least 1")

    @property
    def chunk(self) -> int:
        """Prompt tokens that one step may take; prefill that costs nothing needs no bound."""
        return self.prefill_chunk if self.prefill_tokens_per_s else sys.maxsize

    def step_s(self, decoding: int, prefill_tokens: int) -> float:
        """Seconds of a step in which `decoding` turns decode and `prefill_tokens` are prefilled."""
        return (self.step_ms + self.turn_ms * decoding) / 1000.0 + self.prefill_s(prefill_tokens)

    def prefill_s(self, tokens: int) -> float:
        """Seconds that the prompt tokens alone take."""
        return tokens / self.prefill_tokens_per_s if tokens and self.prefill_tokens_per_s else 0.0
