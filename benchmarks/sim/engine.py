"""A simulated engine: continuous batching in the scripted engine's time, without the tokens.

The same cache (`PrefixCache`) and the same arithmetic (`Timing`); steps that are all alike are
taken in one jump, which ends early when a turn arrives. Turns are seated by priority, then by
arrival; a running turn's blocks are taken whole when it is seated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from msgspec import Struct

from actors.engines.scripted.cache import PrefixCache
from actors.engines.scripted.timing import Timing
from router.kv import KvEvent, KvHeld, KvStored
from router.load import Report


class Shape(Struct, frozen=True):
    """What an engine is like: by default about an H100 with a mid-size model."""

    timing: Timing = Timing(
        step_ms=8.0, turn_ms=0.15, prefill_tokens_per_s=20_000.0, prefill_chunk=4096
    )
    blocks: int = 4096
    block: int = 512
    max_turns: int = 64


class Work(Struct):
    """A turn in the engine. `chain` is as in `SimTurn`; `priority` is the engine's: low first."""

    turn: str
    chain: list[int]
    tokens: int
    out: int
    priority: int = 0
    hits: int = 0
    left: int = 0
    held: int = 0
    private: int = 0
    ends: int = 0


Told = Callable[[str, str, int, float], None]
"""Hears (engine, turn, cached tokens, now) of first tokens, and of ends with -1 for cached."""


class SimEngine:
    """Driven by its owner: `add`, and `complete` at the time that `due` says."""

    def __init__(self, name: str, shape: Shape, told: Told) -> None:
        self.name = name
        self.shape = shape
        self.cache = PrefixCache(shape.blocks, shape.block)
        self.due = float("inf")
        self.busy = 0.0
        self.prefilled = 0
        self._told = told
        self._queue: list[tuple[int, int, Work]] = []
        self._prefilling: list[Work] = []
        self._decoding: list[tuple[int, str, Work]] = []
        self._rank = 0
        self._step = 0
        self._segment = (0.0, 0.0, 0)  # start, seconds of a step, steps
        self._share: list[tuple[Work, int]] = []  # of one step's prefill

    def report(self) -> Report:
        left = sum(work.left for work in self._prefilling) + sum(w.tokens for *_, w in self._queue)
        running = len(self._prefilling) + len(self._decoding)
        used = self.cache.used / self.cache.capacity
        return Report(running, len(self._queue), left, used)

    def add(self, work: Work, now: float) -> None:
        self._rank += 1
        heapq.heappush(self._queue, (work.priority, self._rank, work))
        if self.due == float("inf"):
            self._plan(now)
            return
        start, each, steps = self._segment
        if steps > 1:  # let it in at the next step
            done = min(steps, max(1, -int(-(now - start) // each)))
            self._segment = (start, each, done)
            self.due = start + each * done

    def drop(self, turn: str) -> bool:
        """Take out a turn that still waits or prefills; the cache keeps what it has computed."""
        for place, (*_, work) in enumerate(self._queue):
            if work.turn == turn:
                del self._queue[place]
                heapq.heapify(self._queue)
                return True
        for work in self._prefilling:
            if work.turn == turn:
                self._prefilling.remove(work)
                self._share = [(one, part) for one, part in self._share if one is not work]
                self.cache.release(work.chain[: work.held], work.private)
                return True
        return False

    def complete(self, now: float) -> list[KvEvent]:
        """End the jump that is due; what the cache did."""
        _, each, steps = self._segment
        self.busy += each * steps
        self._step += steps
        for work, part in self._share:
            done = min(work.left, part * steps)
            work.left -= done
            self.prefilled += done
            self._commit(work, (work.tokens - work.left) // self.shape.block)
            if not work.left:
                self._prefilling.remove(work)
                work.ends = self._step + work.out - 1
                heapq.heappush(self._decoding, (work.ends, work.turn, work))
                self._told(self.name, work.turn, work.hits * self.shape.block, now)
        while self._decoding and self._decoding[0][0] <= self._step:
            self._leave(heapq.heappop(self._decoding)[2], now)
        self._plan(now)
        return [
            KvHeld(event.block_hashes, event.block_hashes) if isinstance(event, KvStored) else event
            for event in self.cache.take_events()
        ]

    def _plan(self, now: float) -> None:
        """What the next jump computes, and when it is over."""
        chunk = self.shape.timing.chunk
        self._share, budget = [], chunk
        for work in self._prefilling:
            part = min(work.left, budget)
            if part:
                self._share.append((work, part))
                budget -= part
        while budget and self._queue and self._seat():
            work = self._prefilling[-1]
            part = min(work.left, budget)
            self._share.append((work, part))
            budget -= part
        if not self._share and not self._decoding:
            self.due = float("inf")
            return
        steps = 1
        if not self._share:
            steps = self._decoding[0][0] - self._step
        elif len(self._share) == 1 and self._share[0][1] == chunk:
            steps = max(1, (self._share[0][0].left - 1) // chunk)
            if self._decoding:
                steps = min(steps, self._decoding[0][0] - self._step)
        steps = max(1, steps)
        tokens = sum(part for _, part in self._share)
        each = self.shape.timing.step_s(len(self._decoding), tokens)
        self._segment = (now, each, steps)
        self.due = now + each * steps

    def _seat(self) -> bool:
        if len(self._prefilling) + len(self._decoding) >= self.shape.max_turns:
            return False
        work, size = self._queue[0][2], self.shape.block
        hits = self.cache.match(work.chain, (work.tokens - 1) // size)
        need = -(-(work.tokens + work.out) // size) - hits
        self.cache.hold(work.chain[:hits])
        if not self.cache.take(need):
            self.cache.release(work.chain[:hits], 0)
            return False
        heapq.heappop(self._queue)
        work.hits = work.held = hits
        work.private, work.left = need, work.tokens - hits * size
        self._prefilling.append(work)
        return True

    def _commit(self, work: Work, blocks: int) -> None:
        blocks = min(blocks, len(work.chain))
        if blocks > work.held:
            parent = work.chain[work.held - 1] if work.held else None
            self.cache.store(parent, work.chain[work.held : blocks], (), "")
            work.private -= blocks - work.held
            work.held = blocks

    def _leave(self, work: Work, now: float) -> None:
        self._commit(work, (work.tokens + work.out) // self.shape.block)
        self.cache.release(work.chain[: work.held], work.private)
        self._told(self.name, work.turn, -1, now)
