"""The fleet: who is a member, and what each replica has on its hands.

Load is what the router itself gave out (exact, by reservation) plus what a replica reports beyond
that (turns of before a restart, of other routers). Counts are integers and each reservation is
taken off exactly as it was put on, so an idle fleet is back at zero to the token.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from msgspec import Struct, field

DEFAULT_OSL = 256


class Info(Struct, frozen=True, array_like=True):
    """What never changes while a replica lives. `max_turns` 0 means unbounded."""

    block_size: int
    max_turns: int = 0
    kv_blocks: int = 0
    node: str = ""


class Report(Struct, frozen=True, array_like=True):
    """A replica's own word on its load (`EngineStats` without its totals)."""

    running: int = 0
    waiting: int = 0
    prefill_tokens: int = 0
    kv_used: float = 0.0


class Replica(Struct):
    """One member. `prefill`, `decode` and `context` are in tokens and count what the router gave
    out: still to prefill, expected to be said, and held when all of it is said.

    `minding` is how many of its turns mind slow tokens, in hundredths of a turn.
    `foreign_*` is what is there besides; `beyond` what the last report had beyond ours.
    """

    name: str
    info: Info
    turns: int = 0
    prefill: int = 0
    decode: int = 0
    context: int = 0
    minding: int = 0
    report: Report = field(default_factory=Report)
    foreign_turns: int = 0
    foreign_prefill: int = 0
    beyond: tuple[int, int] | None = None
    last_chosen: int = 0

    @property
    def active(self) -> int:
        return self.turns + self.foreign_turns

    @property
    def full(self) -> bool:
        return 0 < self.info.max_turns <= self.active


class Reservation(Struct, array_like=True):
    """A turn's place on a replica, from decision to release. Times are the caller's `now`."""

    id: str
    turn: str
    replica: str
    owner: str
    prefill: int
    decode: int
    context: int
    made: float
    expires: float
    bucket: int = 0
    overlap_blocks: int = 0
    begun: bool = False
    answered: bool = False
    minding: int = 0


class Fleet:
    """Members and reservations. Every way out of a reservation goes through `_take_off`."""

    def __init__(self, *, begin_ttl: float = 300.0, turn_ttl: float = 3600.0) -> None:
        self.begin_ttl = begin_ttl
        self.turn_ttl = turn_ttl
        self.replicas: dict[str, Replica] = {}
        self.reservations: dict[str, Reservation] = {}
        self.serial = 0
        self._deadlines: list[tuple[float, str]] = []

    def join(self, name: str, info: Info) -> None:
        """Add a member; one of the same name is a new life and starts empty."""
        self.leave(name)
        self.replicas[name] = Replica(name, info)

    def leave(self, name: str) -> list[Reservation]:
        """Remove a member; its reservations end with it and are handed back."""
        if self.replicas.pop(name, None) is None:
            return []
        return self._drop([r for r in self.reservations.values() if r.replica == name])

    def report(self, name: str, report: Report) -> None:
        """Take in a replica's own figures; a stranger's are ignored."""
        replica = self.replicas.get(name)
        if replica is not None:
            turns = max(0, report.running + report.waiting - replica.turns)
            prefill = max(0, report.prefill_tokens - replica.prefill)
            # A report and a release may cross: only what two reports say is foreign for certain.
            before = (turns, prefill) if replica.beyond is None else replica.beyond
            replica.report, replica.beyond = report, (turns, prefill)
            replica.foreign_turns = min(before[0], turns)
            replica.foreign_prefill = min(before[1], prefill)

    def reserve(
        self,
        name: str,
        *,
        turn: str,
        owner: str,
        uncached: int,
        prompt: int,
        osl: int,
        now: float,
        minding: int = 0,
        known_as: str = "",
    ) -> Reservation:
        """Put a turn on a replica: of `prompt` tokens `uncached` to prefill, `osl` to say.

        The reservation is `known_as` its owner calls it, where the owner has made it up.
        """
        self.serial += 1
        made = Reservation(
            id=known_as or f"{turn}/{self.serial}",
            turn=turn,
            replica=name,
            owner=owner,
            prefill=uncached,
            decode=osl,
            context=prompt + osl,
            made=now,
            expires=now + self.begin_ttl,
            minding=minding,
        )
        self.put_on(made)
        return made

    def put_on(self, made: Reservation) -> None:
        """Count a reservation on its replica (also one that a snapshot brings back)."""
        replica = self.replicas[made.replica]
        replica.turns += 1
        replica.prefill += made.prefill
        replica.decode += made.decode
        replica.context += made.context
        replica.minding += made.minding
        replica.last_chosen = self.serial
        self.reservations[made.id] = made
        heappush(self._deadlines, (made.expires, made.id))

    def begun(self, reservation: str, now: float) -> bool:
        """The engine took the turn. False when the reservation is not there (any more)."""
        made = self.reservations.get(reservation)
        if made is None:
            return False
        made.begun = True
        self._prolong(made, now)
        return True

    def first_token(self, reservation: str, now: float) -> Reservation | None:
        """The prefill is over: it no longer weighs. Answers the first time only."""
        made = self.reservations.get(reservation)
        if made is None or made.answered:
            return None
        self.replicas[made.replica].prefill -= made.prefill
        made.prefill = 0
        made.begun = made.answered = True
        self._prolong(made, now)
        return made

    def release(self, reservation: str) -> Reservation | None:
        """End a reservation. The first call answers it, later ones answer None."""
        made = self.reservations.pop(reservation, None)
        if made is not None:
            self._take_off(made)
        return made

    def release_owner(self, owner: str) -> list[Reservation]:
        """End all that an ingress holds: it died."""
        return self._drop([r for r in self.reservations.values() if r.owner == owner])

    def expire(self, now: float) -> list[Reservation]:
        """End what nobody released in time."""
        over = []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, name = heappop(self._deadlines)
            made = self.reservations.get(name)
            if made is not None and made.expires <= now:
                over.append(made)
        return self._drop(over)

    def _prolong(self, made: Reservation, now: float) -> None:
        made.expires = now + self.turn_ttl
        heappush(self._deadlines, (made.expires, made.id))
        if len(self._deadlines) > 4 * len(self.reservations) + 1024:  # mostly of released turns
            self._deadlines = [(r.expires, r.id) for r in self.reservations.values()]
            heapify(self._deadlines)

    def _drop(self, over: list[Reservation]) -> list[Reservation]:
        return [made for made in over if self.release(made.id) is not None]

    def _take_off(self, made: Reservation) -> None:
        replica = self.replicas.get(made.replica)
        if replica is not None:
            replica.turns -= 1
            replica.prefill -= made.prefill
            replica.decode -= made.decode
            replica.context -= made.context
            replica.minding -= made.minding
