"""The scripted engine: the scheduler driven by the loop's clock, one task, one call a step.

Pace: a step is due when the one before it was due plus its length, whatever the loop did meanwhile,
so the mean pace is exact. A late step runs at once, and every step is a call of its own with a pass
of the loop in between, so that catching up never puts two tokens of a turn into one frame. What the
loop lost beyond `MAX_LAG_S` is not caught up: no engine gives back a long stall, and a burst of
hundreds of steps would hide it from whoever measures. An idle engine waits on an event.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Callable
from typing import Any

import msgspec

from actors.engines.engine import EngineInfo, EngineStats, FrameSink, KvSink
from actors.engines.scripted import compose, reply, scenario
from actors.engines.scripted.cache import PrefixCache
from actors.engines.scripted.compose import Encoder, Wire, Writer
from actors.engines.scripted.scene import look
from actors.engines.scripted.schedule import Scheduler
from actors.engines.scripted.script import Fault, Script
from actors.engines.scripted.seat import Work
from actors.engines.scripted.settings import ScriptedSettings
from router.blocks import extras_of
from turns.errors import (
    ContextTooLongError,
    EngineError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
)
from turns.frames import Frame, Job

LOG = logging.getLogger(__name__)
MAX_LAG_S = 0.25
EXIT_CODE = 70  # EX_SOFTWARE: what a supervisor sees of a scripted crash


class ScriptedEngine:
    """`actors.engines.engine.Engine` without a model.

    `write` and `encode` are the family's syntax and its tokenizer (`compose`), `vocab_size` bounds
    the ids taken. `rules` stands in for the file named in the settings; `die` for `os._exit`.
    """

    def __init__(
        self,
        settings: ScriptedSettings,
        *,
        write: Writer,
        encode: Encoder,
        vocab_size: int,
        rules: scenario.Scenario | None = None,
        die: Callable[[int], Any] = os._exit,
    ) -> None:
        self._settings = settings
        self._wire = Wire(write, encode)
        self._vocab_size = vocab_size
        self._rules = rules
        self._die = die
        self._cache = PrefixCache(settings.kv_blocks, settings.block_size)
        self._scheduler = Scheduler(
            timing=settings.timing(), cache=self._cache, max_turns=settings.max_turns
        )
        self._ended: list[Frame] = []  # of turns ended between two steps
        self._task: asyncio.Task[None] | None = None
        self._dead = ""
        self._draining = False
        self._due = math.inf  # when the step under way should have ended

    async def start(self, *, on_frames: FrameSink, on_kv: KvSink) -> EngineInfo:
        settings = self._settings
        if self._rules is None:
            path = settings.scenario or scenario.DEFAULT
            try:
                self._rules = await asyncio.to_thread(scenario.load, path)
            except (OSError, ValueError) as error:
                raise EngineError(f"the scenario cannot be used: {error}") from error
        self._on_frames, self._on_kv = on_frames, on_kv
        self._loop = asyncio.get_running_loop()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task = self._loop.create_task(self._run(), name="scripted-engine")
        return EngineInfo(
            block_size=settings.block_size,
            max_model_len=settings.max_model_len,
            vocab_size=self._vocab_size,
            max_turns=settings.max_turns,
            kv_blocks=settings.kv_blocks,
            reads_conversation=True,
            sees_images=True,
        )

    async def look(self, job: Job) -> None:
        """All that this engine sees of a picture is its name."""

    def begin(self, job: Job) -> None:
        self._admit(job)
        room = self._settings.max_model_len - len(job.prompt)
        limit = room if job.sampling.max_tokens is None else min(room, job.sampling.max_tokens)
        work = Work(
            turn=job.turn,
            prompt=job.prompt,
            script=self._script(job, room + job.resumed),
            limit=limit,
            priority=job.priority,
            salt=job.salt,
            resumed=job.resumed,
            logprobs=job.sampling.logprobs,
            extras=extras_of(
                [(one.digest, one.at, one.length) for one in job.pictures],
                len(job.prompt) // self._settings.block_size + 1,
                self._settings.block_size,
            )
            or [],
        )
        self._scheduler.add(work, self._loop.time())
        self._idle.clear()
        self._work.set()

    def abort(self, turn: str) -> None:
        frame = self._scheduler.abort(turn)
        if frame is None:
            return
        # Not from inside the caller: a sink may not expect to be called by its own abort.
        if not self._ended:
            self._loop.call_soon(self._flush)
        self._ended.append(frame)
        self._work.set()

    def stats(self) -> EngineStats:
        return self._scheduler.stats()

    def reset_cache(self) -> bool:
        """Forget the prefix cache; False, and nothing done, while turns hold blocks of it."""
        done = self._cache.clear()
        if done:
            self._on_kv(self._cache.take_events())
        return done

    async def check(self) -> None:
        if self._dead:
            raise EngineError(self._dead)
        if self._task is None or self._task.done():
            raise EngineError("the engine is not running: start it")
        late = self._loop.time() - self._due
        if late > self._settings.hang_s:
            raise EngineError(f"the engine hangs: a step is {late:.1f} s late; restart the replica")

    async def drain(self, timeout: float) -> None:
        self._draining = True
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return

    async def stop(self) -> None:
        self._draining = True
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for turn in self._scheduler.turns():
            self.abort(turn)
        self._flush()

    def _admit(self, job: Job) -> None:
        """Refuse what cannot be served, before anything is done for it."""
        if self._dead:
            raise EngineError(self._dead)
        if self._task is None or self._draining:
            raise UnavailableError("the engine takes no new turns: try another replica")
        settings, scheduler = self._settings, self._scheduler
        if job.turn in scheduler:
            raise InvalidRequestError(f"turn {job.turn} is running already")
        if not job.prompt:
            raise InvalidRequestError("the prompt is empty")
        if len(job.prompt) >= settings.max_model_len:
            raise ContextTooLongError(len(job.prompt), settings.max_model_len - 1)
        low, high = min(job.prompt), max(job.prompt)
        if low < 0 or high >= self._vocab_size:
            wrong = low if low < 0 else high
            raise InvalidRequestError(
                f"token id {wrong} is not in the vocabulary of {self._vocab_size} tokens"
            )
        if len(scheduler) >= settings.max_turns + settings.max_waiting:
            raise OverloadedError(
                f"{len(scheduler)} turns are running or waiting",
                retry_after=max(1, math.ceil(scheduler.relief_s())),
            )

    def _script(self, job: Job, room: int) -> Script:
        scene = look(job.conversation)
        rules = self._rules
        if rules is None:
            raise EngineError("the engine has no scenario: start it")
        inline = job.conversation.template_kwargs.get("scripted") if job.conversation else None
        try:
            if inline is not None and self._settings.inline:
                plan = reply.by_rule(msgspec.convert(inline, scenario.Rule), scene, {})
            else:
                plan = reply.plan(rules, scene)
        except ValueError as error:
            raise InvalidRequestError(f"the scenario has no reply for this: {error}") from error
        script = compose.script(plan, job, self._wire, room=room)
        said = job.prompt[len(job.prompt) - job.resumed :]
        if said != list(script.ids[: job.resumed]):
            raise InvalidRequestError("the prompt's last tokens are not the start of this reply")
        return script

    async def _run(self) -> None:
        """Step while there is anything to do; end every turn if that fails."""
        try:
            await self._steps()
        except Exception as error:
            LOG.exception("the scripted engine died")
            self._fail(f"the engine died: {error!r}; restart the replica")

    async def _steps(self) -> None:
        scheduler, clock = self._scheduler, self._loop.time
        now = clock()
        while not self._dead:
            end = scheduler.begin_step(now)
            if end is None:
                if not scheduler.stalled:
                    self._due = math.inf
                await self._until_work(scheduler.wake_at)
                now = max(clock(), now)
                continue
            self._due = end
            await self._until(end)
            step = scheduler.finish_step(end)
            if step.events:
                self._on_kv(step.events)
            if step.frames:
                self._on_frames(step.frames)
            if step.fault is not None:
                self._break(step.fault)
            if not len(scheduler):
                self._idle.set()
            late = clock() - end
            now = end if late < MAX_LAG_S else end + late

    async def _until(self, when: float) -> None:
        """Wait for a moment of the loop's clock; let the loop pass at least once."""
        if when <= self._loop.time():
            await asyncio.sleep(0)
            return
        passed = self._loop.create_future()
        timer = self._loop.call_at(when, _ring, passed)
        try:
            await passed
        finally:
            timer.cancel()

    async def _until_work(self, wake_at: float) -> None:
        """Wait until a turn begins or ends, or until a paced turn is due."""
        self._work.clear()
        try:
            async with asyncio.timeout_at(None if wake_at == math.inf else wake_at):
                await self._work.wait()
        except TimeoutError:
            return

    def _flush(self) -> None:
        ended, self._ended = self._ended, []
        if ended:
            self._on_frames(ended)
        if not len(self._scheduler):
            self._idle.set()

    def _break(self, fault: Fault) -> None:
        if fault.kind == "exit":
            self._die(EXIT_CODE)
        self._fail("the engine died: the scenario asked for a crash; restart the replica")

    def _fail(self, reason: str) -> None:
        """The engine is dead: every turn in it ends with an error, and nothing begins any more."""
        self._dead = reason
        self._ended.extend(self._scheduler.fail(reason))
        self._flush()


def _ring(passed: asyncio.Future[None]) -> None:
    if not passed.done():
        passed.set_result(None)
