"""One real vLLM that several servers use, one after the other: a start costs 25 CPU-seconds.

The model is thin and its weights are random; its vocabulary is wide enough for any tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from actors.engines.engine import EngineInfo, EngineStats, FrameSink, KvEvent, KvSink
from actors.engines.vllm import VllmEngine, VllmSettings
from prompts.prompter import Prompt, Prompter
from tests.actors.engines.vllm.thin import THIN
from tests.prompts.played import Said, spoken
from tests.serving.vllm.forced import NAME, PROCESSOR
from turns.blocks import Reasoning, Text, ToolCall
from turns.frames import Frame, Job

VOCABULARY = 152_064
BLOCK = 32  # a CPU takes no smaller one
CONFIG: dict[str, object] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "torch_dtype": "bfloat16",
    "vocab_size": VOCABULARY,
    **THIN,
}

Say = Callable[[Job], Sequence[dict[str, Any] | int]]
"""What a turn shall say: items of a scenario's reply and it ends, or token ids and it goes on."""


def thin_model(folder: Path, tokenizer: Path, **config: Any) -> Path:
    """A model folder with this tokenizer, for vLLM alone: servers have folders of their own."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).symlink_to((tokenizer / name).resolve())
    return folder


def thin_settings(folder: Path, **fields: Any) -> VllmSettings:
    told: dict[str, Any] = {
        "load_format": "dummy",
        "eager": True,
        "block_size": BLOCK,
        "max_model_len": 8192,
        "max_turns": 8,
        "kv_cache_gib": 0.25,
        "threads": 1,
        "thinking": ("<think>", "</think>"),
        "options": {"logits_processors": [PROCESSOR]},
    }
    return VllmSettings(model=str(folder), **(told | fields))


class SharedEngine:
    """An engine for servers that come and go. `say` and `prompter` are of the server of now."""

    def __init__(self, settings: VllmSettings) -> None:
        self.engine = VllmEngine(settings)
        self.say: Say = lambda _: ()
        self.prompter: Prompter | None = None
        self.random = Random(5)
        self._frames: FrameSink = lambda _: None
        self._kv: KvSink = lambda _: None

    async def open(self) -> None:
        """Start the engine itself."""
        self._info = await self.engine.start(on_frames=self._hand, on_kv=self._hand_kv)
        core: Any = self.engine._core
        made = core.params

        def params(job: Job, room: int) -> Any:
            found = made(job, room)
            found.extra_args = {NAME: self._forced(job)}
            found.temperature = 0.0  # drawing from so many words costs more than the model
            return found

        core.params = params

    async def close(self) -> None:
        await self.engine.stop()

    def _hand(self, frames: list[Frame]) -> None:
        self._frames(frames)

    def _hand_kv(self, events: Sequence[KvEvent]) -> None:
        self._kv(events)

    def _forced(self, job: Job) -> list[int]:
        items = self.say(job)
        ids = [item for item in items if isinstance(item, int)]
        if ids or not items or self.prompter is None:
            return ids
        prompt = Prompt([], job.spec.tail, job.stop_ids, None)
        return spoken(
            self.prompter,
            prompt,
            [_block(item) for item in items if isinstance(item, dict)],
            self.random,
        )

    async def start(self, *, on_frames: FrameSink, on_kv: KvSink) -> EngineInfo:
        self._frames, self._kv = on_frames, on_kv
        return replace(self._info, reads_conversation=True)

    async def look(self, job: Job) -> None:
        await self.engine.look(job)

    def begin(self, job: Job) -> None:
        self.engine.begin(job)

    def abort(self, turn: str) -> None:
        self.engine.abort(turn)

    def stats(self) -> EngineStats:
        return self.engine.stats()

    async def check(self) -> None:
        await self.engine.check()

    async def drain(self, timeout: float) -> None:
        """The engine stays."""

    async def stop(self) -> None:
        """The engine stays."""


def _block(item: dict[str, Any]) -> Said:
    match item:
        case {"think": text}:
            return Reasoning(text)
        case {"text": text}:
            return Text(text)
        case {"call": {"tool": name, "arguments": value}}:
            return ToolCall("", name, json.dumps(value, ensure_ascii=False))
        case _:
            raise ValueError(f"nobody can say {item}")
