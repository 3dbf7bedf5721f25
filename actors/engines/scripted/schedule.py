"""Continuous batching as a pure machine: `begin_step(now)`, wait, `finish_step(then)`.

Laws: a turn that was added ends exactly once; turns are seated by priority, then arrival, and
never more than `max_turns`; a running turn says one piece of its script a step once its prompt is
computed; blocks in use are never evicted, and when they run out the worst-placed running turn goes
back to the queue and computes its tokens again later (its content is mostly still cached).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from msgspec import Struct

from actors.engines.engine import EngineStats, KvEvent
from actors.engines.scripted.cache import PrefixCache, extend
from actors.engines.scripted.script import Fault
from actors.engines.scripted.seat import Seat, Work
from actors.engines.scripted.timing import Timing
from turns.frames import Frame

EPSILON = 1e-6  # seconds: what `now` may lack after a sum of floats


class Step(Struct, frozen=True):
    """What one step brought: at most one frame a turn. `fault` says that the engine dies now."""

    frames: list[Frame]
    events: list[KvEvent]
    fault: Fault | None = None


class Scheduler:
    def __init__(self, *, timing: Timing, cache: PrefixCache, max_turns: int) -> None:
        self._timing = timing
        self._cache = cache
        self._max_turns = max_turns
        self._queue: list[tuple[tuple[int, int], Seat]] = []
        self._seats: dict[str, Seat] = {}
        self._prefilling: dict[str, Seat] = {}
        self._decoding: dict[str, Seat] = {}
        self._cramped: list[Seat] = []  # decoding turns whose next token needs a block
        self._planned: list[tuple[Seat, int]] = []
        self._leaving: list[Seat] = []
        self._specials = 0
        self._stale = 0  # turns in the queue that are gone
        self._rank = 0
        self._pending = 0  # prompt tokens not computed yet, of all turns
        self._prompted = self._hit = self._said = self._aborted = 0
        self._fault: Fault | None = None
        self.preemptions = 0
        self.stalled = False
        self.wake_at = math.inf

    def __len__(self) -> int:
        return len(self._seats)

    def __contains__(self, turn: str) -> bool:
        return turn in self._seats

    def turns(self) -> list[str]:
        return list(self._seats)

    def stats(self) -> EngineStats:
        running = len(self._prefilling) + len(self._decoding)
        return EngineStats(
            running=running,
            waiting=len(self._seats) - running,
            prefill_tokens=self._pending,
            kv_used=self._cache.used / self._cache.capacity,
            prompt_tokens_total=self._prompted,
            cached_tokens_total=self._hit,
            output_tokens_total=self._said,
            aborts_total=self._aborted,
        )

    def relief_s(self) -> float:
        """Seconds until the first running turn can end, at the pace of a full step."""
        left = [
            (seat.end - seat.pos) * self._timing.step_s(self._max_turns, 0)
            + self._timing.prefill_s(max(seat.total - seat.computed, 0))
            for seat in self._running()
        ]
        return min(left, default=0.0)

    def add(self, work: Work, now: float) -> None:
        """Queue a turn. ValueError when it could never fit into the cache."""
        seat = Seat(work, rank=self._rank, now=now)
        blocks = -(-seat.end // self._cache.block_size)
        if blocks > self._cache.capacity:
            raise ValueError(
                f"the turn needs {blocks} blocks, the cache has {self._cache.capacity}"
            )
        self._named(seat, seat.total)
        self._rank += 1
        self._seats[seat.turn] = seat
        self._pending += seat.total
        heapq.heappush(self._queue, (seat.order, seat))

    def abort(self, turn: str) -> Frame | None:
        """End the turn now; None if there is no such turn."""
        seat = self._seats.get(turn)
        if seat is None:
            return None
        self._aborted += 1
        frame = self._cut_off(seat)
        frame.finish = "abort"
        return frame

    def fail(self, reason: str) -> list[Frame]:
        """End every turn with an error: the engine is dead."""
        frames = [self._cut_off(seat) for seat in list(self._seats.values())]
        for frame in frames:
            frame.finish, frame.error = "error", reason
        return frames

    def begin_step(self, now: float) -> float | None:
        """Decide what the next step computes; when it will end.

        None: there is nothing to compute before `wake_at` (infinity: before something is added).
        """
        self.wake_at = math.inf
        if self.stalled:
            return None
        before = self.preemptions
        self._uncramp()
        budget = self._plan_running(self._timing.chunk)
        # A turn that was just thrown out must not come back in the same step and throw out others.
        if self.preemptions == before:
            self._admit(budget)
        if not self._planned and not self._decoding:
            return None
        tokens = sum(count for seat, count in self._planned if seat.place == "prefilling")
        seconds = self._timing.step_s(len(self._decoding), tokens)
        if not self._planned and self._specials == len(self._decoding):
            due = min(seat.due for seat in self._decoding.values())
            if due > now + seconds + EPSILON:
                self.wake_at = due - seconds
                return None
        return now + seconds

    def finish_step(self, now: float) -> Step:
        """What the step that ends at `now` brought. O(1) a token; blocks cost once when full."""
        frames: list[Frame] = []
        self._said += len(self._decoding) - self._specials
        for seat in self._decoding.values():
            if seat.special:
                self._say(seat, now, frames)
                continue
            pos = seat.pos
            frame = Frame(seat.turn, [seat.tokens[pos]])
            frames.append(frame)
            seat.pos = pos + 1
            seat.room -= 1
            if not seat.room:
                seat.computed = pos
                self._commit(seat)
                self._cramped.append(seat)
            if pos + 1 == seat.end:
                frame.finish = seat.finish
                self._leaving.append(seat)
        self._finish_prefill(now, frames)
        for seat in self._leaving:
            self._leave(seat)
        self._leaving.clear()
        return Step(frames, self._cache.take_events(), self._fault)

    def _finish_prefill(self, now: float, frames: list[Frame]) -> None:
        for seat, count in self._planned:
            if seat.place != "prefilling":
                continue
            seat.computed += count
            seat.room -= count
            self._pending -= count
            self._commit(seat)
            if seat.computed == seat.total:
                del self._prefilling[seat.turn]
                self._decoding[seat.turn] = seat
                self._specials += seat.special
                seat.place = "decoding"
                self._say(seat, now, frames)
        self._planned.clear()

    def _say(self, seat: Seat, now: float, frames: list[Frame]) -> None:
        """The slow path: first pieces, explicit cuts, a turn's own pace, faults."""
        if seat.due > now + EPSILON:
            return
        pos = seat.pos
        seat.room -= pos - seat.computed
        seat.computed = pos
        self._commit(seat)
        until = seat.cuts.pop() if seat.cuts else min(pos + 1, seat.end)
        ids = seat.tokens[pos:until]
        first = seat.fresh
        frame = seat.first_frame(ids) if first else Frame(seat.turn, ids)
        frame.logprobs = seat.drawn(ids)
        frames.append(frame)
        self._said += until - pos
        seat.pos = until
        if seat.pace is not None:
            seat.due = (now if first else seat.due) + seat.pace.token_s
        if until == seat.end and not seat.cuts and (pos == until or not seat.trailing):
            self._end(seat, frame)
        elif seat.room < until - pos:
            self._cramped.append(seat)

    def _end(self, seat: Seat, frame: Frame) -> None:
        fault = seat.fault
        if fault is None:
            frame.finish = seat.finish
        elif fault.kind == "fail":
            frame.finish, frame.error = "error", fault.message
        else:
            seat.due = math.inf
            self.stalled |= fault.kind == "stall"
            if fault.kind in ("exit", "raise"):
                self._fault = fault
            return
        self._leaving.append(seat)

    def _named(self, seat: Seat, stop: int) -> list[int]:
        """The names of the whole blocks of the seat's first `stop` tokens."""
        size = self._cache.block_size
        return extend(seat.chain, seat.tokens, stop, size, seat.salt, extras=seat.extras)

    def _commit(self, seat: Seat) -> None:
        """Blocks that are full now enter the prefix cache."""
        size, held = self._cache.block_size, seat.held
        full = seat.computed // size
        if full == held:
            return
        chain = self._named(seat, full * size)
        parent = chain[held - 1] if held else None
        tokens = seat.tokens[held * size : full * size]
        self._cache.store(parent, chain[held:full], tokens, seat.salt, seat.extras[held:full])
        seat.private -= full - held
        seat.held = full

    def _uncramp(self) -> None:
        cramped, self._cramped = self._cramped, []
        for seat in cramped:
            if seat.place == "decoding":
                self._ensure(seat, seat.pos)

    def _plan_running(self, budget: int) -> int:
        for seat in list(self._prefilling.values()):
            count = min(seat.total - seat.computed, budget)
            if count and seat.place == "prefilling" and self._ensure(seat, seat.computed + count):
                self._planned.append((seat, count))
                budget -= count
        return budget

    def _admit(self, budget: int) -> None:
        size = self._cache.block_size
        while (
            self._queue and budget and len(self._prefilling) + len(self._decoding) < self._max_turns
        ):
            seat = self._queue[0][1]
            if seat.place == "gone":
                heapq.heappop(self._queue)
                self._stale -= 1
                continue
            self._named(seat, seat.total)
            # The last token is always computed: without it there is nothing to draw from.
            hits = self._cache.match(seat.chain, (seat.total - 1) // size)
            count = min(seat.total - hits * size, budget)
            blocks = -(-(hits * size + count) // size) - hits
            self._cache.hold(seat.chain[:hits])
            if not self._cache.take(blocks):
                self._cache.release(seat.chain[:hits], 0)
                return
            heapq.heappop(self._queue)
            self._seat(seat, hits, blocks)
            self._planned.append((seat, count))
            budget -= count

    def _seat(self, seat: Seat, hits: int, blocks: int) -> None:
        size = self._cache.block_size
        seat.place = "prefilling"
        seat.held, seat.private = hits, blocks
        seat.computed, seat.room = hits * size, blocks * size
        self._prefilling[seat.turn] = seat
        self._pending -= seat.computed
        if seat.cached < 0:
            seat.cached = seat.computed
            self._prompted += seat.total
            self._hit += seat.cached

    def _ensure(self, seat: Seat, upto: int) -> bool:
        """Blocks for the first `upto` tokens of `seat`. False: it had to give up its place."""
        size = self._cache.block_size
        need = -(-upto // size) - seat.held - seat.private
        if need <= 0:
            return True
        while not self._cache.take(need):
            victim = max(self._running(), key=lambda running: running.order)
            self._preempt(victim)
            if victim is seat:
                return False
        seat.private += need
        seat.room += need * size
        return True

    def _preempt(self, seat: Seat) -> None:
        self.preemptions += 1
        self._give_back(seat)
        seat.place = "waiting"
        seat.total = seat.pos
        self._pending += seat.total
        heapq.heappush(self._queue, (seat.order, seat))

    def _cut_off(self, seat: Seat) -> Frame:
        """Remove a turn between two steps; its last frame."""
        if seat.place == "waiting":
            self._stale += 1
        self._leave(seat)
        if self._stale * 2 > len(self._queue):
            self._queue = [entry for entry in self._queue if entry[1].place != "gone"]
            heapq.heapify(self._queue)
            self._stale = 0
        return seat.first_frame([]) if seat.fresh else Frame(seat.turn, [])

    def _leave(self, seat: Seat) -> None:
        self._give_back(seat)
        seat.place = "gone"
        del self._seats[seat.turn]

    def _give_back(self, seat: Seat) -> None:
        """Out of the running set: blocks back to the cache, nothing pending any more."""
        self._pending -= seat.total - min(seat.computed, seat.total)
        if seat.place == "prefilling":
            del self._prefilling[seat.turn]
        elif seat.place == "decoding":
            del self._decoding[seat.turn]
            self._specials -= seat.special
        self._cache.release(seat.chain[: seat.held], seat.private)
        seat.held = seat.private = seat.computed = seat.room = 0

    def _running(self) -> Iterator[Seat]:
        yield from self._prefilling.values()
        yield from self._decoding.values()
