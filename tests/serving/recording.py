"""An engine that remembers what it was asked, and says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from actors.engines.engine import Engine, EngineInfo, EngineStats, FrameSink, KvSink
from turns.frames import Frame, Job


class RecordingEngine:
    """Wraps an engine. `says` is a rule of a scenario: all turns from now on are answered by it.

    `jobs` are those begun, in order; `output` the token ids that each turn was given; `cached`
    how much of a turn's prompt the prefix cache held; `aborts` the loop's time at which a turn was
    aborted.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.says: dict[str, Any] | None = None
        self.keeps_output = True
        self.heard: Callable[[str], None] | None = None
        self.jobs: list[Job] = []
        self.output: dict[str, list[int]] = {}
        self.cached: dict[str, int] = {}
        self.aborts: dict[str, float] = {}

    async def start(self, *, on_frames: FrameSink, on_kv: KvSink) -> EngineInfo:
        def heard(frames: list[Frame]) -> None:
            for frame in frames if self.keeps_output else ():
                self.output.setdefault(frame.turn, []).extend(frame.ids)
                if frame.cached >= 0:
                    self.cached[frame.turn] = frame.cached
                if self.heard is not None:
                    self.heard(frame.turn)
            on_frames(frames)

        return await self._engine.start(on_frames=heard, on_kv=on_kv)

    async def look(self, job: Job) -> None:
        await self._engine.look(job)

    def begin(self, job: Job) -> None:
        self.jobs.append(job)
        talk = job.conversation
        if self.says is not None and talk is not None:
            kwargs = talk.template_kwargs | {"scripted": self.says}
            job = replace(job, conversation=replace(talk, template_kwargs=kwargs))
        self._engine.begin(job)

    def abort(self, turn: str) -> None:
        self.aborts[turn] = asyncio.get_running_loop().time()
        self._engine.abort(turn)

    def forget(self) -> None:
        """Drop what was recorded, for those who ask for very much."""
        self.jobs.clear()
        self.output.clear()
        self.cached.clear()
        self.aborts.clear()

    def stats(self) -> EngineStats:
        return self._engine.stats()

    async def check(self) -> None:
        await self._engine.check()

    async def drain(self, timeout: float) -> None:
        await self._engine.drain(timeout)

    async def stop(self) -> None:
        await self._engine.stop()
