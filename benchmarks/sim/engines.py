"""Eight scripted engines in this process and in real time, behind the router's own code.

What the simulator reckons, these do: token ids, blocks, steps of real length. Sizes are a tenth.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from functools import partial

from actors.engines.engine import KvEvent
from actors.engines.scripted.engine import ScriptedEngine
from actors.engines.scripted.scenario import read
from actors.engines.scripted.settings import ScriptedSettings
from benchmarks.sim.figures import at
from router.blocks import chain
from router.decision import Ask, Choice
from router.holdings import Holdings
from router.load import Info
from router.router import Router, Settings
from turns.frames import Frame, Job, ParseSpec
from turns.turn import Sampling

BLOCK, REPLICAS, VOCABULARY, TURNS, OUT = 64, 8, 100_000, 6, 24
ENGINE = ScriptedSettings(
    block_size=BLOCK,
    kv_blocks=1024,
    max_model_len=32_768,
    max_turns=16,
    max_waiting=1000,
    step_ms=10.0,
    turn_ms=0.2,
    prefill_tokens_per_s=20_000,
)


class Engines:
    """The fleet, its router, and who waits for what."""

    def __init__(self, policy: str) -> None:
        self.router = Router(Settings(policy=policy))
        self.engines: dict[str, ScriptedEngine] = {}
        self.active: dict[str, int] = {}
        self.first: dict[str, asyncio.Future[int]] = {}
        self.over: dict[str, asyncio.Future[None]] = {}
        self.seen: list[tuple[float, int, int]] = []  # TTFT, cached, prompt

    async def start(self) -> None:
        for number in range(REPLICAS):
            name, held = f"r{number}", Holdings()
            engine = self.engines[name] = ScriptedEngine(
                ENGINE,
                write=lambda _spec, _blocks: "",
                encode=lambda _text: [7, 8, 9, 10],
                vocab_size=VOCABULARY,
                rules=read({"rules": [{"reply": [{"endless": "word"}]}]}),
            )
            self.active[name] = 0
            await engine.start(on_frames=self._take, on_kv=partial(self._tell, name, held))
            self.router.join(name, Info(BLOCK, 1000, ENGINE.kv_blocks))

    def _tell(self, name: str, held: Holdings, events: Sequence[KvEvent]) -> None:
        self.router.kv(name, held.take(events))

    def _take(self, frames: list[Frame]) -> None:
        for frame in frames:
            if (first := self.first.pop(frame.turn, None)) is not None:
                first.set_result(frame.cached)
            if frame.finish:
                self.over.pop(frame.turn).set_result(None)

    async def turn(self, name: str, session: str, prompt: list[int]) -> None:
        loop, asked = asyncio.get_running_loop(), time.monotonic()
        ask = Ask(
            turn=name,
            hashes=chain(prompt, BLOCK),
            prompt_tokens=len(prompt),
            session=session,
            osl=OUT,
        )
        made = self.router.choose(ask, asked)
        if not isinstance(made, Choice):
            raise TypeError(made)
        first = self.first[name] = loop.create_future()
        over = self.over[name] = loop.create_future()
        self.active[made.replica] += 1
        sampling = Sampling(max_tokens=OUT)
        self.engines[made.replica].begin(Job(name, prompt, sampling, ParseSpec("none", ""), (0,)))
        cached = await first
        self.router.first_token(made.reservation, time.monotonic(), cached)
        self.seen.append((time.monotonic() - asked, cached, len(prompt)))
        await over
        self.router.release(made.reservation, time.monotonic())


async def run(policy: str, *, sessions: int, seed: int = 1) -> dict[str, float]:
    """A row of figures."""
    fleet = Engines(policy)
    await fleet.start()
    chance = random.Random(seed)

    async def session(name: str, own: random.Random) -> None:
        await asyncio.sleep(own.uniform(0.0, 8.0))
        prompt = [*range(100, 1600), *(own.randrange(20, VOCABULARY) for _ in range(6000))]
        for number in range(TURNS):
            await fleet.turn(f"{name}/{number}", name, prompt)
            prompt = [*prompt, *(own.randrange(20, VOCABULARY) for _ in range(150))]
            await asyncio.sleep(own.uniform(0.1, 1.0))

    names = [f"s{n}" for n in range(sessions)]
    await asyncio.gather(*(session(name, random.Random(chance.random())) for name in names))
    await asyncio.gather(*(engine.stop() for engine in fleet.engines.values()))
    active = list(fleet.active.values())
    return {
        "turns": len(fleet.seen),
        "hit": sum(cached for _, cached, _ in fleet.seen) / sum(size for *_, size in fleet.seen),
        "ttft p50 s": at((seconds for seconds, *_ in fleet.seen), 0.5),
        "ttft p99 s": at((seconds for seconds, *_ in fleet.seen), 0.99),
        "imbalance": max(active) * len(active) / sum(active),
    }
