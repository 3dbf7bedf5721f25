"""The conductor: owns every turn of one ingress from its beginning to its one ending.

Laws: a turn that was begun gets exactly one terminal event, whatever dies; its reservation is
released exactly once; nothing it holds outlives it. The events of a whole engine step are handed
on in one pass, without waking a task per turn.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from actors.messages import LeaseEnd, decode_lease_end
from turns.errors import (
    EngineError,
    InvalidRequestError,
    OverloadedError,
    TreadleError,
    UnavailableError,
)
from turns.events import Event, TurnEnded, TurnFailed, TurnStarted
from turns.frames import EventBatch, Job

LAST_EVENTS_WAIT = 10.0
"""Seconds between the end of a lease and the arrival of its last events, at most."""

END_GRACE = 0.2
"""Seconds an engine has to end its lease after the parser ended the turn. It needs none when it
ended the turn itself; a stop string is found above it, and it would run on."""

NEVER_BEGUN = ("overloaded", "unavailable")
"""Ends of a lease that say that the turn was refused, so that another replica may be asked."""

encode_job = msgspec.msgpack.Encoder().encode


class Sink(Protocol):
    """Takes the events of one turn, a step at a time. Must not block and must not raise."""

    def take(self, events: list[Event]) -> None: ...


class Watch(Protocol):
    """Hears of a turn's two turning points."""

    def began(self, cached: int) -> None:
        """Its first events are here; `cached` prompt tokens came from the cache."""
        ...

    def generated(self, ids: Sequence[int]) -> None:
        """All tokens that it generated; it has come to its end and lands now."""
        ...

    def landed(self) -> None:
        """It is over, however it ended. Called exactly once."""
        ...


class Unwatched:
    """Watches nothing: the turns that a carried turn is made of have watches of their own."""

    def began(self, cached: int) -> None: ...
    def generated(self, ids: Sequence[int]) -> None: ...
    def landed(self) -> None: ...


class LeaseCall(Protocol):
    """Opens a turn on a replica; awaiting gives its LeaseEnd, cancelling aborts the turn."""

    def __call__(self, job: bytes, replica: str) -> asyncio.Future[bytes]: ...


class Flight:
    """One turn in the air."""

    __slots__ = ("landed", "lane", "replicas", "retry_after", "sink", "task", "turn", "watch")

    def __init__(self, turn: str, replicas: Sequence[str], sink: Sink, watch: Watch) -> None:
        self.turn = turn
        self.replicas = replicas
        self.sink = sink
        self.watch = watch
        self.landed = asyncio.Event()
        self.lane = ""
        self.retry_after = 1
        self.task: asyncio.Task[None] | None = None


class Conductor:
    """Begins turns, hands their events on, and ends them."""

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def by_lane(self) -> Counter[str]:
        """How many turns are in the air on each lane; "" are those that have not begun."""
        return Counter(flight.lane for flight in self._flights.values())

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
        flight = Flight(job.turn, replicas, sink, watch)
        self._flights[job.turn] = flight
        flight.task = asyncio.ensure_future(self._hold(flight, call, data))
        return flight

    def carry(self, turn: str, sink: Sink, work: Coroutine[Any, Any, None]) -> Flight:
        """Hold a turn that is made of other turns: `work` brings it to its end, and ends with it
        when its client leaves.
        """
        flight = Flight(turn, (), sink, Unwatched())
        self._flights[turn] = flight
        flight.task = asyncio.ensure_future(work)
        flight.task.add_done_callback(lambda _: self._land(flight))
        return flight

    def deliver(self, batches: Iterable[EventBatch], lane: str) -> None:
        """The events of one step of one lane. Turns that are not ours any more are ignored."""
        for batch in batches:
            flight = self._flights.get(batch.turn)
            if flight is None:
                continue
            if not flight.lane:
                flight.lane = lane
                first = batch.events[0]
                if isinstance(first, TurnStarted):
                    flight.watch.began(first.cached_tokens)
            flight.sink.take(batch.events)
            last = batch.events[-1]
            if isinstance(last, TurnEnded | TurnFailed):
                flight.watch.generated(batch.output)
                self._land(flight, grace=END_GRACE)

    def lane_lost(self, lane: str) -> int:
        """Fail exactly the turns whose events came on this lane; says how many they were."""
        lost = [f for f in self._flights.values() if f.lane == lane]
        for flight in lost:
            self._fail(flight, EngineError("the parser of this turn died; send the turn again"))
        return len(lost)

    def cancel(self, flight: Flight) -> None:
        """The client is gone: abort the engine's work now. No event follows."""
        self._land(flight)

    async def _hold(self, flight: Flight, call: LeaseCall, job: bytes) -> None:
        try:
            end = await self._lease(flight, call, job)
            if end.kind is not None:
                flight.retry_after = end.retry_after
                self._fail(flight, lease_error(end))
                return
            async with asyncio.timeout(LAST_EVENTS_WAIT):
                await flight.landed.wait()
        except TimeoutError:
            self._fail(flight, EngineError("the end of this turn was lost; send it again"))
        except TreadleError as error:
            self._fail(flight, error)
        except Exception as error:  # noqa: BLE001 - whatever killed the call, the turn has died
            self._fail(flight, replica_died(error))

    async def _lease(self, flight: Flight, call: LeaseCall, job: bytes) -> LeaseEnd:
        """The end of the lease of the replica that began the turn, or the last one's refusal."""
        end = LeaseEnd("unavailable", "no replica took this turn; send it again")
        for replica in flight.replicas:
            lease = call(job, replica)
            try:
                end = decode_lease_end(await lease)
            except asyncio.CancelledError:
                lease.cancel()
                raise
            if end.kind not in NEVER_BEGUN:
                return end
        return end

    def _fail(self, flight: Flight, error: TreadleError) -> None:
        if flight.turn in self._flights:
            flight.sink.take([TurnFailed(error.kind, error.message)])
            self._land(flight)

    def _land(self, flight: Flight, *, grace: float = 0.0) -> None:
        if self._flights.pop(flight.turn, None) is None:
            return
        flight.landed.set()
        task = flight.task
        if task is not None and task is not asyncio.current_task():
            if grace:
                asyncio.get_running_loop().call_later(grace, task.cancel)
            else:
                task.cancel()
        flight.watch.landed()


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
