"""The queue of turns that wait for a place: bounded, strict by tier, fair between tenants.

Within a tier a turn's rank is a start tag less its priority. Tags come from start-time fair
queueing: a tenant's next turn starts where its last one ended, or now if it was idle, in thousands
of tokens; so tenants with a backlog take turns by tokens, not by count, and one that was idle is
next. Tags grow as turns are served, so priority ages: a turn that waits is overtaken by a bounded
amount of later work, never for ever.
"""

from __future__ import annotations

from bisect import insort

from msgspec import Struct
from msgspec.structs import replace

from router.decision import Ask

_PRIORITY_STEP = 10.0  # thousand tokens of others' work that one point of priority jumps


class Waiting(Struct, frozen=True, order=True):
    """A turn in the queue. Its order is its rank: the least goes first."""

    tier: int
    rank: float
    serial: int
    tag: float
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
        end = tag + max(1.0, (ask.prompt_tokens + (ask.osl or 0)) / 1000)
        rank = tag - ask.priority * _PRIORITY_STEP
        place = Waiting(-ask.tier, rank, self._serial, tag, now + self.patience, ask.turn)
        if len(self._line) >= self.limit and (not self._line or place > self._line[-1]):
            return ask
        insort(self._line, place)
        self._asks[ask.turn] = ask
        self._ends[ask.tenant] = end
        return self._asks.pop(self._line.pop().turn) if len(self._line) > self.limit else None

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
        self._clock = max(self._clock, self._line.pop(at).tag)
        self._settle()
        return self._asks.pop(turn)

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
        if self._asks.pop(turn, None) is None:
            return False
        self._line = [waiting for waiting in self._line if waiting.turn != turn]
        self._settle()
        return True

    def expire(self, now: float) -> list[Ask]:
        """Take out those whose patience is over."""
        over = [waiting.turn for waiting in self._line if waiting.deadline <= now]
        if over:
            self._line = [waiting for waiting in self._line if waiting.deadline > now]
            self._settle()
        return [self._asks.pop(turn) for turn in over]

    def _settle(self) -> None:
        # Where nobody waits, nobody is behind. Ends before the clock say nothing any more.
        if not self._line:
            self._ends.clear()
            self._clock = 0.0
        elif len(self._ends) > 4 * self.limit:
            self._ends = {who: end for who, end in self._ends.items() if end > self._clock}
