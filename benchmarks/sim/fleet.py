"""A run: sessions against a fleet behind one router, on a virtual clock."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from benchmarks.sim.engine import Shape, SimEngine, Work
from benchmarks.sim.sessions import Session, SimTurn
from router.decision import Ask, Choice, Decision, Queued
from router.kv import KvEvent
from router.load import Info
from router.policy import Policy
from router.router import Router, Settings

HOP = 0.002
"""Seconds of a message between ingress, router and engine."""

TELL_EVERY = 0.1
"""Seconds for which KV events are collected, as `actors.kv_telling` does."""

REPORT_EVERY = 1.0


class Seen(Struct):
    """What became of a turn. Times in seconds; `ttft` and `seconds` from when it was asked."""

    session: str
    tokens: int
    out: int
    asked: float
    priority: int = 0
    replica: str = ""
    cached: int = 0
    ttft: float = -1.0
    seconds: float = -1.0
    refused: int = 0


class Outcome(Struct):
    """Of a whole run. `active` is the mean number of turns on each replica; `load` is the share of
    time in which engines were busy while sessions kept coming, the first third left out.
    """

    turns: list[Seen]
    active: dict[str, float]
    busy: dict[str, float]
    prefilled: int
    warmed: int
    seconds: float
    load: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)


class Flight(Struct):
    """A turn under way."""

    seen: Seen
    turn: SimTurn
    session: Session
    number: int
    choice: Choice | None = None
    over: Callable[[], None] | None = None


class Fleet:
    """`tune` may change a turn before the router is asked: hints, or their absence.

    `warm` turns speculative prefill on; `refresh` seconds pass between refreshes of pinned ones.
    """

    def __init__(
        self,
        replicas: int,
        *,
        shape: Shape | None = None,
        settings: Settings | None = None,
        policy: Policy | None = None,
        tune: Callable[[Ask, SimTurn], Ask] | None = None,
        engine_priority: bool = True,
        warm: bool = False,
        refresh: float = 0.0,
    ) -> None:
        self.shape = shape or Shape()
        self.router = Router(settings)
        if policy is not None:
            self.router._policy = policy  # noqa: SLF001 - a policy that is compared and not ours
        self.engines: dict[str, SimEngine] = {}
        self.now = 0.0
        self.outcome = Outcome([], {}, {}, 0, 0, 0.0)
        self._tune = tune
        self._warm = warm
        self._refresh = refresh
        self._warming: dict[str, str] = {}
        self._begun: dict[str, int] = {}
        self._engine_priority = engine_priority
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._serial = itertools.count()
        self._flights: dict[str, Flight] = {}
        self._kv: dict[str, list[KvEvent]] = {}
        self._reported: set[str] = set()
        self._at: dict[str, tuple[float, int]] = {}  # since when, how many turns
        for number in range(replicas):
            name = f"r{number}"
            self.engines[name] = SimEngine(name, self.shape, self._told)
            self.router.join(name, Info(self.shape.block, self.shape.max_turns, self.shape.blocks))
            self._at[name] = (0.0, 0)
            self.outcome.active[name] = 0.0

    def at(self, when: float, call: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self._events, (when, next(self._serial), call, args))

    def run(self, sessions: Sequence[Session], until: float = float("inf")) -> Outcome:
        last = max(session.start for session in sessions)
        for session in sessions:
            self.at(session.start, self._ask, session, 0, 0, None)
        self.at(last / 3, self._gauge, -1)
        self.at(last, self._gauge, 1)
        while self._events and self._events[0][0] <= until:
            self.now, _, call, args = heapq.heappop(self._events)
            call(*args)
        outcome = self.outcome
        outcome.seconds = self.now
        for name, engine in self.engines.items():
            self._count(name, 0)
            outcome.active[name] /= self.now or 1.0
            outcome.busy[name] = engine.busy / (self.now or 1.0)
            outcome.prefilled += engine.prefilled
        outcome.load /= len(self.engines) * (last * 2 / 3 or 1.0)
        outcome.counts = dict(self.router.counts)
        return outcome

    def _ask(
        self, session: Session, number: int, tries: int, over: Callable[[], None] | None
    ) -> None:
        turn = session.turns[number]
        name = f"{session.name}/{number}/{tries}"
        ask = Ask(
            turn=name,
            hashes=turn.chain[: turn.tokens // self.shape.block],
            prompt_tokens=turn.tokens,
            priority=turn.priority,
            tier=turn.tier,
            osl=turn.osl,
            session=session.name,
            tenant=session.tenant,
        )
        if self._tune is not None:
            ask = self._tune(ask, turn)
        if tries:
            flight = self._flights.pop(f"{session.name}/{number}/{tries - 1}")
            flight.seen.refused += 1
        else:
            seen = Seen(session.name, turn.tokens, turn.out, self.now, turn.priority)
            self.outcome.turns.append(seen)
            flight = Flight(seen, turn, session, number, over=over)
        self._flights[name] = flight
        self._decided(name, self.router.choose(ask, self.now))

    def _decided(self, name: str, decision: Decision) -> None:
        flight = self._flights[name]
        if isinstance(decision, Choice):
            flight.choice = decision
            flight.seen.replica = decision.replica
            self._count(decision.replica, 1)
            self.at(self.now + 2 * HOP, self._begin, name)
        elif not isinstance(decision, Queued):
            again = self.now + decision.retry_after
            tries = int(name.rsplit("/", 1)[1]) + 1
            self.at(again, self._ask, flight.session, flight.number, tries, flight.over)

    def _begin(self, name: str) -> None:
        flight = self._flights[name]
        turn, engine = flight.turn, self.engines[flight.seen.replica]
        self._begun[flight.session.name] = flight.number + 1
        warm = f"warm/{flight.session.name}"
        if (where := self._warming.get(warm)) is not None and self.engines[where].drop(warm):
            del self._warming[warm]
        priority = -turn.priority if self._engine_priority else 0
        engine.add(Work(name, turn.chain, turn.tokens, turn.out, priority), self.now)
        self._follow(engine)

    def _follow(self, engine: SimEngine) -> None:
        if engine.due < float("inf"):
            self.at(engine.due, self._complete, engine, engine.due)
        if engine.name not in self._reported:
            self._reported.add(engine.name)
            self.at(self.now + REPORT_EVERY, self._report, engine)

    def _complete(self, engine: SimEngine, due: float) -> None:
        if engine.due != due:
            return  # the jump was cut short
        events = engine.complete(self.now)
        if events:
            if engine.name not in self._kv:
                self._kv[engine.name] = []
                self.at(self.now + TELL_EVERY, self._tell, engine.name)
            self._kv[engine.name] += events
        self._follow(engine)

    def _tell(self, name: str) -> None:
        self.router.kv(name, self._kv.pop(name))

    def _report(self, engine: SimEngine) -> None:
        self._reported.discard(engine.name)
        self.router.report(engine.name, engine.report())
        self._answer()
        if engine.due < float("inf"):
            self._reported.add(engine.name)
            self.at(self.now + REPORT_EVERY, self._report, engine)

    def _told(self, replica: str, name: str, cached: int, now: float) -> None:
        if name.startswith("warm/"):
            if cached < 0:
                del self._warming[name]
            else:
                self.outcome.warmed += 1
            return
        flight = self._flights[name]
        choice = flight.choice
        if choice is None:
            raise RuntimeError(name)
        if cached >= 0:
            flight.seen.ttft = now + HOP - flight.seen.asked
            flight.seen.cached = cached
            self.router.begun(choice.reservation, now)
            self.router.first_token(choice.reservation, now, cached)
            return
        flight.seen.seconds = now + HOP - flight.seen.asked
        del self._flights[name]
        self._count(replica, -1)
        self.router.release(choice.reservation, now)
        self.at(now + HOP, self._answer)
        self._next(flight, replica)

    def _next(self, flight: Flight, replica: str) -> None:
        session, number = flight.session, flight.number + 1
        if number < len(session.turns):
            if self._warm:
                self._warm_up(session, number, replica)
            if session.pinned and self._refresh:
                self.at(self.now + self._refresh, self._keep, session, number, replica)
        agents = flight.turn.agents
        left = [len(agents)]

        def go_on() -> None:
            if number < len(session.turns):
                when = self.now + session.turns[number].gap
                self.at(when, self._ask, session, number, 0, flight.over)
            elif flight.over is not None:
                flight.over()

        def joined() -> None:
            left[0] -= 1
            if not left[0]:
                go_on()

        for agent in agents:
            self.at(self.now + HOP, self._ask, agent, 0, 0, joined)
        if not agents:
            go_on()

    def _warm_up(self, session: Session, number: int, replica: str) -> None:
        """Speculative prefill: what is known of the next prompt, where it is not resident."""
        turn, engine, size = session.turns[number], self.engines[replica], self.shape.block
        known = turn.chain[: turn.known // size]
        if engine.cache.match(known, len(known)) < len(known):
            self._send_warm(session, known, engine)

    def _keep(self, session: Session, number: int, replica: str) -> None:
        """Refresh of a pinned prefix, until the session's next turn has begun."""
        if number < self._begun.get(session.name, 0):
            return
        turn, before = session.turns[number], session.turns[number - 1]
        known = turn.chain[: min(turn.tokens, before.tokens) // self.shape.block]
        self._send_warm(session, known, self.engines[replica])
        self.at(self.now + self._refresh, self._keep, session, number, replica)

    def _send_warm(self, session: Session, known: list[int], engine: SimEngine) -> None:
        name = f"warm/{session.name}"
        if not known or name in self._warming:
            return
        self._warming[name] = engine.name
        engine.add(Work(name, known, len(known) * self.shape.block, 1, priority=1000), self.now)
        self._follow(engine)

    def _answer(self) -> None:
        for ask, decision in self.router.admit(self.now):
            self._decided(ask.turn, decision)

    def _gauge(self, sign: int) -> None:
        """How long engines were busy between the first third of the starts and the last start."""
        self.outcome.load += sign * sum(engine.busy for engine in self.engines.values())

    def _count(self, replica: str, change: int) -> None:
        since, turns = self._at[replica]
        self.outcome.active[replica] += turns * (self.now - since)
        self._at[replica] = (self.now, turns + change)
