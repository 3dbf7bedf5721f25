"""The settings of a scripted engine, as they stand in a cluster's configuration."""

from __future__ import annotations

from msgspec import Struct

from actors.engines.scripted.timing import Timing


class ScriptedSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes in tokens, times in the unit of the name; the pace is `Timing`'s, which see.

    `scenario` is the path of a YAML file, "" the default one. `max_waiting` turns may queue behind
    `max_turns` running ones. `hang_s` without a due step makes `check` fail. `inline` lets a
    request bring its own rule in the template argument `scripted`: for tests only, since it can
    ask for a crash.
    """

    scenario: str = ""
    block_size: int = 16
    kv_blocks: int = 16_384
    max_model_len: int = 131_072
    max_turns: int = 64
    max_waiting: int = 256
    step_ms: float = 0.0
    turn_ms: float = 0.0
    prefill_tokens_per_s: float = 0.0
    prefill_chunk: int = 2048
    hang_s: float = 10.0
    inline: bool = False

    def __post_init__(self) -> None:
        for name in ("block_size", "kv_blocks", "max_turns"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.max_waiting < 0:
            raise ValueError("max_waiting is below 0")
        if self.max_model_len < 2:  # noqa: PLR2004 - one token in, one out
            raise ValueError("max_model_len must be at least 2")
        if self.kv_blocks * self.block_size < self.max_model_len:
            raise ValueError(
                f"kv_blocks * block_size = {self.kv_blocks * self.block_size} tokens cannot hold "
                f"one turn of max_model_len {self.max_model_len}: raise kv_blocks to at least "
                f"{-(-self.max_model_len // self.block_size)} or lower max_model_len"
            )
        self.timing()

    def timing(self) -> Timing:
        return Timing(self.step_ms, self.turn_ms, self.prefill_tokens_per_s, self.prefill_chunk)
