"""An engine under test: what goes in, and all that comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from actors.engines.engine import EngineInfo, KvEvent
from actors.engines.vllm import VllmEngine, VllmSettings
from turns.frames import Frame, Job, ParseSpec
from turns.turn import Sampling

THINKING = ("<jupyter_start>", "<jupyter_code>")  # two control tokens of the vocabulary
WAIT_S = 60  # the longest wait for anything; a loaded machine is slow, a hang is for ever


class Driven:
    """An engine, and all that came out of it so far."""

    def __init__(self, settings: VllmSettings) -> None:
        self.engine = VllmEngine(settings)
        self.frames: dict[str, list[Frame]] = {}
        self.batches: list[list[Frame]] = []
        self.kv: list[KvEvent] = []
        self.listeners: list[Callable[[list[Frame]], None]] = []
        self._news = asyncio.Event()

    async def start(self) -> EngineInfo:
        self.info = await self.engine.start(on_frames=self._take, on_kv=self._take_kv)
        return self.info

    def _take(self, frames: list[Frame]) -> None:
        for listener in self.listeners:
            listener(frames)
        self.batches.append(frames)
        for frame in frames:
            self.frames.setdefault(frame.turn, []).append(frame)
        self._news.set()

    def _take_kv(self, events: Sequence[KvEvent]) -> None:
        self.kv.extend(events)
        self._news.set()

    def token(self, text: str) -> int:
        """The id of a control token."""
        found = self._tokenizer().token_to_id(text)
        assert found is not None
        return found

    def text(self, ids: list[int]) -> str:
        return str(self._tokenizer().decode(ids))

    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(f"{self.engine._settings.model}/tokenizer.json")

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not true():
                self._news.clear()
                await self._news.wait()

    def ended(self, turn: str) -> bool:
        return bool(self.frames.get(turn)) and self.frames[turn][-1].finish is not None

    def ids(self, turn: str) -> list[int]:
        return [token for frame in self.frames[turn] for token in frame.ids]

    async def finish(self, *turns: str) -> None:
        await self.until(lambda: all(self.ended(turn) for turn in turns))

    async def answer(self, work: Job) -> list[int]:
        self.engine.begin(work)
        await self.finish(work.turn)
        return self.ids(work.turn)


def job(
    turn: str,
    prompt: Sequence[int],
    *,
    tokens: int | None = 8,
    temperature: float = 0.0,
    **fields: Any,
) -> Job:
    sampling = Sampling(max_tokens=tokens, temperature=temperature)
    return Job(turn, list(prompt), sampling, ParseSpec("smollm2", ""), **fields)


def tiny_settings(folder: Path, **fields: Any) -> VllmSettings:
    told: dict[str, Any] = {
        "load_format": "dummy",
        "eager": True,
        "block_size": 32,
        "max_model_len": 4096,
        "max_turns": 4,
        "kv_cache_gib": 0.0625,
        "threads": 1,
        "thinking": THINKING,
    }
    return VllmSettings(model=str(folder), **(told | fields))
