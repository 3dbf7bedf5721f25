"""What a vLLM engine is told: plain data, read from a cluster config."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class VllmSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """One engine. None leaves the choice to vLLM.

    `model` is a folder with config, weights and tokenizer; nothing is fetched. `tokenizer` is a
    folder too, where it is not the model's.
    `kv_cache_gib` is the memory for the KV cache (on a CPU 1 unless said); a GPU takes
    `gpu_memory` instead, a share of its own from 0 to 1.
    `max_turns` run at once; `max_queued` more may wait before a turn is refused as overload.
    `eager` skips compilation, on a CPU unless said: it starts in a tenth of the time for it and
    loses a third in decoding.
    `threads` are OpenMP threads of a CPU engine, 0 for all the process may use; `bind` is
    vLLM's `VLLM_CPU_OMP_THREADS_BIND` (`auto`, `nobind`, `0-3`): two engines that share cores
    must not both bind.
    `thinking` are the texts that open and close reasoning (`["<think>", "</think>"]`); without
    them vLLM cannot keep a turn's thinking budget.
    `hang_after` seconds without one step while turns run count as a dead engine.
    `options` are further arguments of vLLM's `AsyncEngineArgs` by name, and win over all above.
    """

    model: str
    tokenizer: str | None = None
    max_model_len: int | None = None
    max_turns: int = 64
    max_queued: int = 256
    max_batch_tokens: int | None = None
    block_size: int | None = None
    kv_cache_gib: float | None = None
    gpu_memory: float | None = None
    tensor_parallel: int = 1
    dtype: str = "auto"
    eager: bool | None = None
    load_format: str = "auto"
    threads: int = 0
    bind: str = "nobind"
    thinking: tuple[str, str] | None = None
    seed: int = 0
    kv_events: bool = True
    hang_after: float = 300.0
    options: dict[str, Any] = field(default_factory=dict)
