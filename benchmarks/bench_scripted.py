"""What the scripted engine itself costs: CPU per token, frames built, nothing behind the sink.

    python -m benchmarks.bench_scripted [--turns 64] [--tokens 400] [--step-ms 20]

Two figures: as fast as possible, and paced. The paced one divides by the tokens of the run, so it
holds the timers and passes of the loop too.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from itertools import pairwise

from actors.engines.scripted.engine import ScriptedEngine
from actors.engines.scripted.reply import Said
from actors.engines.scripted.scenario import read
from actors.engines.scripted.settings import ScriptedSettings
from turns.frames import Frame, Job, ParseSpec
from turns.turn import Sampling

PROMPT = 512


def write(_spec: ParseSpec, _blocks: Sequence[Said]) -> str:
    return ""


def encode(_text: str) -> list[int]:
    return [7, 8, 9, 10]


async def run(turns: int, tokens: int, step_ms: float) -> tuple[float, float, float]:
    """CPU µs a token, wall seconds, and the widest gap between two calls in milliseconds."""
    engine = ScriptedEngine(
        ScriptedSettings(step_ms=step_ms, max_turns=turns),
        write=write,
        encode=encode,
        vocab_size=100_000,
        rules=read({"rules": [{"reply": [{"endless": "word"}]}]}),
    )
    left, done, marks = turns, asyncio.Event(), list[float]()

    def on_frames(frames: list[Frame]) -> None:
        nonlocal left
        marks.append(time.perf_counter())
        left -= sum(frame.finish is not None for frame in frames)
        if not left:
            done.set()

    await engine.start(on_frames=on_frames, on_kv=lambda _: None)
    for turn in range(turns):
        prompt = [turn + 20, *range(1000, 1000 + PROMPT)]
        engine.begin(
            Job(str(turn), prompt, Sampling(max_tokens=tokens), ParseSpec("none", ""), (0,))
        )
    wall, cpu = time.perf_counter(), time.process_time()
    await done.wait()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    await engine.stop()
    gap = max((b - a for a, b in pairwise(marks)), default=0.0)
    return cpu / (turns * tokens) * 1e6, wall, gap * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--step-ms", type=float, default=20.0)
    parser.add_argument("--quick", action="store_true", help="a quarter of the tokens")
    given = parser.parse_args()
    given.tokens //= 4 if given.quick else 1
    for step_ms in (0.0, given.step_ms):
        cpu, wall, gap = asyncio.run(run(given.turns, given.tokens, step_ms))
        rate = given.turns * given.tokens / wall
        pace = f"{step_ms:g} ms a step" if step_ms else "as fast as possible"
        print(
            f"{given.turns} turns, {pace}: {cpu:.2f} µs CPU a token, {rate:,.0f} tokens/s, "
            f"{wall:.2f} s, widest gap {gap:.1f} ms"
        )


if __name__ == "__main__":
    main()
