"""vLLM behind the interface of an engine: the turns it runs, their frames, their ends.

All runs on one event loop. What vLLM hands out in one pass over its turns is gathered and given to
`on_frames` in one call at the next turn of the loop, so a step costs one call however many turns it
moved. A turn ends exactly once: by vLLM, by `abort`, or with the engine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from actors.engines.engine import EngineInfo, EngineStats, FrameSink, KvSink
from actors.engines.vllm.environment import prepare
from actors.engines.vllm.reaper import Reaper
from actors.engines.vllm.sampling import check_prompt
from actors.engines.vllm.settings import VllmSettings
from turns.errors import (
    EngineError,
    InvalidRequestError,
    OverloadedError,
    TreadleError,
    UnavailableError,
)
from turns.frames import Finish, Frame, Job

if TYPE_CHECKING:
    from actors.engines.vllm.binding import Core, Rows
    from actors.engines.vllm.kv_feed import KvFeed


class Running:
    """A turn in the engine. `name` is vLLM's, "" until vLLM has it."""

    __slots__ = ("name", "output", "prompt", "started")

    def __init__(self, prompt: int) -> None:
        self.name = ""
        self.prompt = prompt
        self.output = 0
        self.started = False


class VllmEngine:
    """See `actors.engines.engine.Engine`."""

    def __init__(self, settings: VllmSettings) -> None:
        self._settings = settings
        self._turns: dict[str, Running] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._frames: list[Frame] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self._stepped = time.monotonic()
        self._prompt_tokens = self._cached_tokens = self._output_tokens = self._aborts = 0
        self._core: Core | None = None
        self._feed: KvFeed | None = None
        self._reaper: Reaper | None = None

    async def start(self, *, on_frames: FrameSink, on_kv: KvSink) -> EngineInfo:
        self._on_frames = on_frames
        self._loop = asyncio.get_running_loop()
        prepare(self._settings)
        try:
            self._core = await asyncio.to_thread(self._open)
        except Exception as error:
            await self.stop()
            raise EngineError(f"vLLM could not start {self._settings.model}: {error}") from error
        if self._feed is not None:
            self._feed.start(on_kv)
        self._info = self._core.info
        return self._info

    def _open(self) -> Core:
        # Imported only now: vLLM reads its environment at import, and it may not be installed.
        from actors.engines.vllm.binding import Core  # noqa: PLC0415
        from actors.engines.vllm.kv_feed import KvFeed  # noqa: PLC0415

        if self._settings.kv_events:
            self._feed = KvFeed()
        self._reaper = Reaper()
        try:
            return Core(self._settings, self._feed.endpoints if self._feed else None)
        finally:
            self._reaper.unmark()

    async def look(self, job: Job) -> None:
        await asyncio.to_thread(self._ready().readable.check, job.pictures)

    def begin(self, job: Job) -> None:
        core = self._ready()
        if dead := core.dead():
            raise EngineError(dead)
        limit = self._info.max_turns + self._settings.max_queued
        if self._draining:
            raise UnavailableError("this engine is going away and takes no new turn")
        if len(self._turns) >= limit:
            raise OverloadedError(f"{limit} turns run or wait in this engine already")
        if job.turn in self._turns:
            raise InvalidRequestError(f"the turn {job.turn} runs already")
        info = self._info
        room = check_prompt(
            job.prompt, vocab_size=info.vocab_size, max_model_len=info.max_model_len
        )
        try:
            params = core.params(job, room)
        except ValueError as error:
            raise InvalidRequestError(str(error)) from error
        if not self._turns:
            self._stepped = time.monotonic()
        running = self._turns[job.turn] = Running(len(job.prompt))
        self._idle.clear()
        self._spawn(self._admit(core, job, params, running))

    def abort(self, turn: str) -> None:
        running = self._turns.get(turn)
        if running is None:
            return
        self._aborts += 1
        self._end(turn, Frame(turn, [], finish="abort"))
        if running.name and self._core is not None:
            self._spawn(self._core.abort(running.name))

    def stats(self) -> EngineStats:
        """`kv_used` counts what running turns hold; a prefix that two turns share counts twice."""
        info, block = self._info, self._info.block_size
        turns = self._turns.values()
        started = [turn for turn in turns if turn.started]
        blocks = sum(-(-(turn.prompt + turn.output) // block) for turn in started)
        return EngineStats(
            running=len(started),
            waiting=len(turns) - len(started),
            prefill_tokens=sum(turn.prompt for turn in turns if not turn.started),
            kv_used=min(1.0, blocks / info.kv_blocks) if info.kv_blocks else 0.0,
            prompt_tokens_total=self._prompt_tokens,
            cached_tokens_total=self._cached_tokens,
            output_tokens_total=self._output_tokens,
            aborts_total=self._aborts,
        )

    async def check(self) -> None:
        if dead := self._ready().dead():
            raise EngineError(dead)
        silent = time.monotonic() - self._stepped
        if self._turns and silent > self._settings.hang_after:
            raise EngineError(f"vLLM has made no step for {silent:.0f} s while turns run")

    async def drain(self, timeout: float) -> None:
        self._draining = True
        try:
            await asyncio.wait_for(self._idle.wait(), timeout)
        except TimeoutError:
            return  # what still runs ends with `stop`

    async def stop(self) -> None:
        self._draining = True
        for turn in list(self._turns):
            self._end(turn, Frame(turn, [], finish="error", error="the engine was stopped"))
        self._flush()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._feed is not None:
            await self._feed.close()
        if self._core is not None:
            self._core.close()
        if self._reaper is not None:
            await asyncio.to_thread(self._reaper.close)
        self._core = self._feed = self._reaper = None

    def _ready(self) -> Core:
        if self._core is None:
            raise EngineError("the engine is not running; start it first")
        return self._core

    async def _admit(self, core: Core, job: Job, params: Any, running: Running) -> None:
        failed = partial(self._failed, job.turn, running)
        try:
            name = await core.add(job, params, partial(self._made, job.turn, running), failed)
        except TreadleError as error:
            failed(error.message)
        except Exception as error:  # noqa: BLE001 whatever vLLM raises, the turn must end
            failed(f"vLLM refused the turn: {error}")
        else:
            running.name = name
            if self._turns.get(job.turn) is not running:
                await core.abort(name)  # the turn was aborted on its way in

    def _made(  # noqa: PLR0917 - half of it is bound; the rest is what the binding gives
        self,
        turn: str,
        running: Running,
        ids: list[int],
        cached: int,
        finish: Finish | None,
        logprobs: Rows | None = None,
    ) -> None:
        """Take what one step made for a turn. Called for all turns of the step in one pass."""
        if self._turns.get(turn) is not running:
            return  # it was aborted; vLLM had these tokens on their way
        self._stepped = time.monotonic()
        frame = Frame(turn, ids, finish=finish, logprobs=logprobs)
        if not running.started:
            running.started = True
            frame.cached = cached
            self._prompt_tokens += running.prompt
            self._cached_tokens += cached
        running.output += len(ids)
        self._output_tokens += len(ids)
        if finish is None:
            self._put(frame)
        else:
            self._end(turn, frame)

    def _failed(self, turn: str, running: Running, error: str) -> None:
        if self._turns.get(turn) is running:
            self._end(turn, Frame(turn, [], finish="error", error=error))

    def _end(self, turn: str, frame: Frame) -> None:
        del self._turns[turn]
        if not self._turns:
            self._idle.set()
        self._put(frame)

    def _put(self, frame: Frame) -> None:
        if not self._frames:
            self._loop.call_soon(self._flush)
        self._frames.append(frame)

    def _flush(self) -> None:
        frames, self._frames = self._frames, []
        if frames:
            self._on_frames(frames)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
