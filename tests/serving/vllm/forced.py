"""What a request must say, on a real vLLM: its own way in for logits, so only the choice is forced.

Prefill, cache, scheduling and sampling are the engine's. A model of a few random weights would
never write a tool call; what it would say instead is of no interest here. vLLM's processes import
this module by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

if TYPE_CHECKING:
    import torch

NAME = "forced"
PROCESSOR = "tests.serving.vllm.forced:Forced"


class Forced(AdapterLogitsProcessor):
    """A request whose `extra_args` hold `forced` says these token ids first, then what it will."""

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params: Any) -> Any:
        forced: list[int] = (params.extra_args or {}).get(NAME, [])
        if not forced:
            return None

        def choose(output: list[int], logits: torch.Tensor) -> torch.Tensor:
            if len(output) < len(forced):
                logits.fill_(float("-inf"))
                logits[forced[len(output)]] = 0.0
            return logits

        return choose
