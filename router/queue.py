"""The queue of turns that wait for a place: bounded, strict by tier, fair between tenants.

Within a tier a turn's rank is a start tag less its priority. Tags come from start-time fair
queueing: a tenant's next turn starts where its last one ended, or now if it was idle, in thousands
of tokens; so tenants with a backlog take turns by tokens, not by count, and one that was idle is
next. Tags grow as turns are served, so priority ages: a turn that waits is overtaken by a bounded
amount of later work, never for ever. A turn that leaves unserved costs its tenant nothing: those
that its tenant asked for after it move up as if it had never come.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from router.decision import Ask

_PRIORITY_STEP = 10.0  # thousand tokens of others' work that one point of priority jumps


class Waiting(Struct, frozen=True, order=True):
    """A turn in the queue. Its order is its rank: the least goes first. `floor` is the clock as it
    was when the turn came: it starts no earlier.
    """

    tier: int
    rank: float
    serial: int
    tag: float
    end: float
    floor: float
    deadline: float
    turn: str


class Queue:
    """At most `limit` turns, each at most `patience` seconds."""

    def __init__(self, *, limit: int, patience: float = 30.0) -> None:
        self.limit = limit
        self.patience = patience
        self._line: list[Waiting] = []
        self._asks: dict[str, Ask] = {}
        self._ends: dict[str, float] = {}  # tenant -> where its last turn ends
        self._served: dict[str, float] = {}  # tenant -> where those end that were served
        self._clock = 0.0  # tag of the turn served last
        self._serial = 0

    def __len__(self) -> int:
        return len(self._line)

    def push(self, ask: Ask, now: float) -> Ask | None:
        """Take the turn in. Answers who had to go: the last in rank, maybe `ask` itself."""
        if ask.turn in self._asks:
            raise ValueError(f"turn {ask.turn} waits already: push it once, or cancel it first")
        self._serial += 1
        tag = max(self._clock, self._ends.get(ask.tenant, 0.0))
        place = Waiting(
            -ask.tier,
            _rank(ask, tag),
            self._serial,
            tag,
            tag + _cost(ask),
            self._clock,
            now + self.patience,
            ask.turn,
        )
        if len(self._line) >= self.limit and (not self._line or place > self._line[-1]):
            return ask
        insort(self._line, place)
        self._asks[ask.turn] = ask
        self._ends[ask.tenant] = place.end
        return self._unserved([self._line.pop()])[0] if len(self._line) > self.limit else None

    def ahead(self, turn: str) -> int:
        """How many go before it. KeyError when it does not wait."""
        for place, waiting in enumerate(self._line):
            if waiting.turn == turn:
                return place
        raise KeyError(turn)

    def peek(self) -> Ask | None:
        """Who goes next."""
        return self._asks[self._line[0].turn] if self._line else None

    def pop(self) -> Ask:
        """Serve who goes next. IndexError when nobody waits."""
        return self.serve(self._line[0].turn)

    def serve(self, turn: str) -> Ask:
        """Serve a turn that may have others before it. KeyError when it does not wait."""
        at = self.ahead(turn)
        served, ask = self._line.pop(at), self._asks.pop(turn)
        self._clock = max(self._clock, served.tag)
        self._served[ask.tenant] = max(served.end, self._served.get(ask.tenant, 0.0))
        self._settle()
        return ask

    def line(self) -> list[Ask]:
        """All who wait, in their order."""
        return [self._asks[waiting.turn] for waiting in self._line]

    def welcome(self, replicas: frozenset[str]) -> None:
        """Those who wait may be sent there again: they were no members when they asked."""
        for turn, ask in self._asks.items():
            if not replicas.isdisjoint(ask.exclude):
                left = tuple(r for r in ask.exclude if r not in replicas)
                self._asks[turn] = replace(ask, exclude=left)

    def cancel(self, turn: str) -> bool:
        """Take a turn out: its client left."""
        if turn not in self._asks:
            return False
        self._unserved([self._line.pop(self.ahead(turn))])
        return True

    def expire(self, now: float) -> list[Ask]:
        """Take out those whose patience is over."""
        over = [waiting for waiting in self._line if waiting.deadline <= now]
        if over:
            self._line = [waiting for waiting in self._line if waiting.deadline > now]
        return self._unserved(over)

    def _unserved(self, gone: Sequence[Waiting]) -> list[Ask]:
        """Turns have left the line without being served: to their tenants they never came."""
        asks = [self._asks.pop(waiting.turn) for waiting in gone]
        since: dict[str, int] = {}  # tenant -> serial of the first that left
        for ask, waiting in zip(asks, gone, strict=True):
            since[ask.tenant] = min(waiting.serial, since.get(ask.tenant, waiting.serial))
        if since:
            self._move_up(since)
            self._settle()
        return asks

    def _move_up(self, since: dict[str, int]) -> None:
        ends = {tenant: self._served.get(tenant, 0.0) for tenant in since}
        moved: dict[int, Waiting] = {}  # by serial
        theirs = [one for one in self._line if self._asks[one.turn].tenant in since]
        for waiting in sorted(theirs, key=lambda one: one.serial):
            ask = self._asks[waiting.turn]
            end = waiting.end
            if waiting.serial > since[ask.tenant]:
                # never back: a turn that was served out of its order may end behind it
                tag = min(waiting.tag, max(waiting.floor, ends[ask.tenant]))
                end, rank = tag + _cost(ask), _rank(ask, tag)
                moved[waiting.serial] = replace(waiting, rank=rank, tag=tag, end=end)
            ends[ask.tenant] = max(end, ends[ask.tenant])
        if moved:
            self._line = sorted(moved.get(one.serial, one) for one in self._line)
        self._ends |= ends

    def _settle(self) -> None:
        # Where nobody waits, nobody is behind. Ends before the clock say nothing any more.
        if not self._line:
            self._ends.clear()
            self._served.clear()
            self._clock = 0.0
        elif len(self._ends) > 4 * self.limit:
            self._ends = {who: end for who, end in self._ends.items() if end > self._clock}
            self._served = {who: end for who, end in self._served.items() if end > self._clock}


def _cost(ask: Ask) -> float:
    return max(1.0, (ask.prompt_tokens + (ask.osl or 0)) / 1000)


def _rank(ask: Ask, tag: float) -> float:
    return tag - ask.priority * _PRIORITY_STEP
