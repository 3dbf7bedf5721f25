"""The conductor: owns every turn of one ingress from its beginning to its one ending.

Laws: a turn that was begun gets exactly one terminal event, whatever dies; its reservation is
released exactly once; nothing it holds outlives it. A turn outlives what runs it: it goes on
elsewhere (`actors.legs`) behind the tokens whose events were handed on, so that no token is lost
and none comes twice. The events of a whole engine step are handed on in one pass, without waking a
task per turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from actors import legs
from actors.flights import NO_CALL, Flight, LeaseCall, Sink, Unwatched, Watch, Why
from actors.messages import LeaseEnd, decode_lease_end
from turns.errors import (
    EngineError,
    InvalidRequestError,
    OverloadedError,
    TreadleError,
    UnavailableError,
)
from turns.events import Event, TurnEnded, TurnFailed, TurnStarted
from turns.frames import EventBatch, Job, ParseSpec
from turns.turn import Sampling

log = logging.getLogger(__name__)

LAST_EVENTS_WAIT = 5.0
"""Seconds between the end of a lease and the arrival of its last events, at most."""

END_GRACE = 0.2
"""Seconds an engine has to end its lease after the parser ended the turn. It needs none when it
ended the turn itself; a stop string is found above it, and it would run on."""

PAUSE_FIRST, PAUSE_LONGEST = 0.05, 1.0
"""Seconds between two looks for another place."""

NEVER_BEGUN = ("overloaded", "unavailable")
"""Ends of a lease that say that the turn was refused, so that another replica may be asked."""

encode_job = msgspec.msgpack.Encoder().encode


class Perseverance(msgspec.Struct, frozen=True):
    """How far a turn is carried. Times in seconds.

    `moves`: how many losses it survives. `patience`: how long it may wait for another place,
    `alone` how long while there is no replica at all, and `parked` how long where it made room for
    another. `quiet`: after how long without a word its replica is asked whether it still runs it.
    """

    moves: int = 3
    patience: float = 60.0
    alone: float = 4.0
    parked: float = 600.0
    quiet: float = 5.0


class Conductor:
    """Begins turns, hands their events on, and ends them.

    `left` is told of each leg that was given up: what parses it here forgets it.
    """

    def __init__(self, how: Perseverance | None = None) -> None:
        self.how = how or Perseverance()
        self.left: Callable[[str], None] = lambda _leg: None
        self._turns: dict[str, Flight] = {}
        self._legs: dict[str, Flight] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def flights(self) -> list[Flight]:
        return list(self._turns.values())

    def by_lane(self) -> Counter[str]:
        """How many turns are in the air on each lane; "" are those that have not begun."""
        return Counter(flight.lane for flight in self._turns.values())

    def begin(
        self, job: Job, call: LeaseCall, replicas: Sequence[str], sink: Sink, watch: Watch
    ) -> Flight:
        """Start the turn on the first of `replicas`; all that follows comes to `sink` and `watch`.

        The others are asked in their order while the one before does not begin it. Raises
        InvalidRequestError for what cannot travel.
        """
        try:
            data = encode_job(job)
        except OverflowError:
            msg = "a number in the request does not fit into 64 bits; send it as a string"
            raise InvalidRequestError(msg) from None
        flight = Flight(job, call, sink, watch)
        self._turns[job.turn] = flight
        self._name(flight, job.turn)
        flight.task = asyncio.ensure_future(self._carry(flight, data, replicas))
        return flight

    def carry(self, turn: str, sink: Sink, work: Coroutine[Any, Any, None]) -> Flight:
        """Hold a turn that is made of other turns: `work` brings it to its end, and ends with it
        when its client leaves.
        """
        flight = Flight(Job(turn, [], Sampling(), ParseSpec("", "")), NO_CALL, sink, Unwatched())
        self._turns[turn] = flight
        flight.task = asyncio.ensure_future(work)
        flight.task.add_done_callback(lambda _: self._land(flight))
        return flight

    def deliver(self, batches: Iterable[EventBatch], lane: str) -> None:
        """The events of one step of one lane. Turns that are not ours any more are ignored."""
        now = asyncio.get_running_loop().time()
        for batch in batches:
            flight = self._legs.get(batch.turn)
            if flight is None:
                continue
            flight.heard = now
            flight.ids += batch.ids
            events = batch.events
            if not flight.lane:
                events = self._began(flight, events, lane)
            if events and isinstance(events[-1], TurnEnded | TurnFailed):
                self._ended(flight, events, exact=batch.exact)
            elif events:
                flight.sink.take(events)

    def lane_lost(self, lane: str) -> int:
        """Exactly the turns whose events came on this lane go on elsewhere; says how many."""
        lost = [f for f in self._legs.values() if f.lane == lane]
        for flight in lost:
            self.end_leg(flight, "lost")
        return len(lost)

    def park(self, turn: str) -> bool:
        """Have a turn give up its place to another and go on when there is one again. False where
        it stays: it is not there yet, or its output is bound, in the middle of which not every
        engine can go on.
        """
        flight = self._turns.get(turn)
        if flight is None:
            return True  # it is over, and so is its place
        if not flight.leg or not flight.replica or bound(flight):
            return False
        self.end_leg(flight, "parked")
        return True

    def hold(self, flight: Flight) -> None:
        """Its client does not keep up: nothing more is generated until `resume`.

        One whose output is bound goes on, as in `park`.
        """
        if flight.inner is not None:
            self.hold(flight.inner)
        if bound(flight):
            return
        flight.clear.clear()
        if flight.leg and flight.replica:  # a first leg that asks for no replica yet sees it itself
            self.end_leg(flight, "slow")

    def resume(self, flight: Flight) -> None:
        flight.clear.set()
        if flight.inner is not None:
            self.resume(flight.inner)

    def within(self, outer: Flight, inner: Flight) -> None:
        """The turn that `outer` is made of now; it is held as long as `outer` is."""
        outer.inner = inner
        if not outer.clear.is_set():
            self.hold(inner)

    def cancel(self, flight: Flight) -> None:
        """The client is gone: abort the engine's work now. No event follows."""
        self._land(flight)

    def end_leg(self, flight: Flight, why: Why) -> None:
        """End the leg; the turn goes on. What still comes from the old place is a stranger's."""
        self._unname(flight)
        flight.left = why
        if flight.task is not None:
            flight.task.cancel()

    async def _carry(self, flight: Flight, data: bytes, replicas: Sequence[str]) -> None:
        """Fly one leg after the other until the turn is over."""
        try:
            while not await self._fly(flight, data, replicas):
                replicas = await self._place(flight)
                flight.legs += 1
                job = legs.leg(flight.job, flight.legs, flight.ids)
                self._name(flight, job.turn)
                data = encode_job(job)
        except TreadleError as error:
            self._fail(flight, error)
        except Exception as error:
            log.exception("turn %s: a defect in its conductor", flight.turn)
            self._fail(flight, replica_died(error))

    async def _fly(self, flight: Flight, data: bytes, replicas: Sequence[str]) -> bool:
        """One leg. True when the turn is over; False when it has to go on elsewhere."""
        try:
            end = await self._lease(flight, data, replicas)
            if end.kind is None:
                async with asyncio.timeout(LAST_EVENTS_WAIT):
                    await flight.landed.wait()
                return True
        except asyncio.CancelledError:
            if flight.left is None or flight.landed.is_set():
                raise
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            end = LeaseEnd("engine", "its parser was lost", lost=flight.left in ("lost", "silent"))
        except TimeoutError:
            end = LeaseEnd("engine", "the end of this turn was lost", lost=True)
        except Exception as error:  # noqa: BLE001 - whatever killed the call, this leg has died
            end = LeaseEnd("engine", replica_died(error).message, lost=True)
        return self._leg_over(flight, end)

    def _leg_over(self, flight: Flight, end: LeaseEnd) -> bool:
        """False when the turn may go on; it has failed otherwise."""
        if flight.landed.is_set():
            return True
        self._unname(flight)
        flight.retry_after = end.retry_after
        if end.lost:
            flight.losses += end.kind not in NEVER_BEGUN  # it may have found its replica gone
            flight.left = flight.left or "lost"
            if flight.losses > self.how.moves:
                self._fail(flight, EngineError(f"{end.message}; this turn was moved in vain"))
        elif flight.left is None and (flight.legs == 0 or end.kind not in NEVER_BEGUN):
            self._fail(flight, lease_error(end))
        return flight.landed.is_set()

    async def _lease(self, flight: Flight, data: bytes, replicas: Sequence[str]) -> LeaseEnd:
        """The end of the lease of the replica that began the turn, or the last one's refusal."""
        end = LeaseEnd("unavailable", "no replica took this turn; send it again")
        if not flight.clear.is_set():
            flight.left = "slow"
            return end
        for replica in replicas:
            flight.replica = replica
            lease = flight.call(data, replica)
            try:
                end = decode_lease_end(await lease)
            except asyncio.CancelledError:
                lease.cancel()
                raise
            if end.kind not in NEVER_BEGUN:
                return end
        return end

    async def _place(self, flight: Flight) -> Sequence[str]:
        """Another place, waited for within bounds: they hold until there are events again."""
        clock, how = asyncio.get_running_loop().time, self.how
        if not flight.clear.is_set():
            flight.watch.leave()  # nobody has to wait for its reader
            await flight.clear.wait()
        if not flight.since:
            flight.patience = how.parked if flight.left == "parked" else how.patience
            flight.since = clock()
        lost = flight.replica if flight.left in ("lost", "silent") else ""
        refusal = OverloadedError("this turn lost its place and found no other; try again")
        pause = 0.0 if flight.left else PAUSE_FIRST  # where all have just refused
        limit = flight.patience
        while True:
            await asyncio.sleep(pause)
            if clock() - flight.since > limit:
                raise refusal
            try:
                replicas = await flight.watch.again(flight.ids, lost)
                if flight.clear.is_set():
                    return replicas
                flight.watch.leave()  # its client fell behind while it looked
                await flight.clear.wait()
                flight.since = clock()
                continue
            except OverloadedError as error:
                refusal = error
                alone = isinstance(error, UnavailableError)
                limit = min(how.alone, flight.patience) if alone else flight.patience
            pause = min(max(2 * pause, PAUSE_FIRST), PAUSE_LONGEST)

    def _began(self, flight: Flight, events: list[Event], lane: str) -> list[Event]:
        """The first events of a leg; that the turn started is told once."""
        flight.lane, flight.since = lane, 0.0
        first = events[0]
        if not isinstance(first, TurnStarted):
            return events
        flight.watch.began(first.cached_tokens)
        if flight.started is not None:
            return events[1:]
        flight.started = first
        return events

    def _ended(self, flight: Flight, events: list[Event], *, exact: bool) -> None:
        last, started = events[-1], flight.started
        if flight.legs and started is not None and isinstance(last, TurnEnded):
            usage = replace(last.usage, cached=started.cached_tokens)
            events = [*events[:-1], replace(last, usage=usage)]
        flight.sink.take(events)
        flight.watch.generated(flight.ids if exact else ())
        self._land(flight, grace=END_GRACE)

    def _name(self, flight: Flight, leg: str) -> None:
        flight.leg, flight.left = leg, None
        flight.heard = asyncio.get_running_loop().time()
        self._legs[leg] = flight

    def _unname(self, flight: Flight) -> None:
        if flight.leg:
            del self._legs[flight.leg]
            self.left(flight.leg)
        flight.leg = flight.lane = ""

    def _fail(self, flight: Flight, error: TreadleError) -> None:
        if flight.turn in self._turns:
            flight.sink.take([TurnFailed(error.kind, error.message)])
            self._land(flight)

    def _land(self, flight: Flight, *, grace: float = 0.0) -> None:
        if self._turns.pop(flight.turn, None) is None:
            return
        self._unname(flight)
        flight.landed.set()
        task = flight.task
        if task is not None and task is not asyncio.current_task():
            if grace:
                asyncio.get_running_loop().call_later(grace, task.cancel)
            else:
                task.cancel()
        flight.watch.landed(len(flight.ids))


def bound(flight: Flight) -> bool:
    """Whether the turn is in the middle of what a grammar binds."""
    return flight.job.constraint is not None and bool(flight.ids)


def lease_error(end: LeaseEnd) -> TreadleError:
    """The error of a lease that ended badly, in the tree's own class."""
    match end.kind:
        case "overloaded":
            return OverloadedError(end.message, retry_after=end.retry_after)
        case "unavailable":
            return UnavailableError(end.message, retry_after=end.retry_after)
        case "invalid_request" | "context_too_long":
            error = InvalidRequestError(end.message)
            error.kind = end.kind
            return error
        case _:
            return EngineError(end.message)


def replica_died(error: BaseException) -> EngineError:
    """What a client may read of a replica's death; the cause goes to the log, not to the wire."""
    return EngineError(f"the engine replica was lost in mid-turn ({type(error).__name__})")
