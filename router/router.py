"""The router: ties index, load, policy and queue into one answer per turn.

The life of a reservation: `choose` makes it, `begun` and `first_token` follow it, `release` ends
it, exactly once. It also ends when its replica leaves, its ingress dies or its time is over; then
`release` answers False and nothing is counted twice. A turn that never began takes its prediction
back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from router.cost import minding
from router.decision import Ask, Choice, Decision, Queued, Refusal, Refused
from router.feed import Feed
from router.index import PrefixIndex
from router.kv import KvEvent
from router.load import DEFAULT_OSL, Fleet, Info, Report, Reservation
from router.pace import Pace
from router.policy import POLICIES, Tuning, View
from router.queue import Queue
from router.snapshot import VERSION, Member, State, decode, encode
from router.trust import Trust

Answer = tuple[Ask, Choice | Refusal]

OVER = 8192
"""Reservations that were over before they were told of, the last ones: see `Router.put`."""


class Settings(Struct, frozen=True, kw_only=True):
    """Times in seconds. `queue_limit` 0 refuses at once when the fleet is full.

    `begin_ttl` bounds the wait for a first token: a long prompt behind others in its engine may
    take minutes, and a reservation that ends before its turn does makes its load vanish.
    """

    policy: str = "kv"
    tuning: Tuning = field(default_factory=Tuning)
    seed: int = 0
    max_blocks: int = 4_000_000
    max_predicted: int = 262_144
    predicted_ttl: float = 120.0
    begin_ttl: float = 300.0
    turn_ttl: float = 3600.0
    queue_limit: int = 0
    queue_patience: float = 30.0


class Router:
    """One model's fleet. Every method is a plain call and none blocks.

    `counts` has decisions by their why, and the blocks of overlap that decisions `promised` and
    engines `kept`: far apart, the index does not see what the engines do.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = chosen = settings or Settings()
        if chosen.policy not in POLICIES:
            raise ValueError(f"policy {chosen.policy!r}: choose one of {', '.join(POLICIES)}")
        self._policy = POLICIES[chosen.policy]
        self.fleet = Fleet(begin_ttl=chosen.begin_ttl, turn_ttl=chosen.turn_ttl)
        self.index = PrefixIndex(
            max_blocks=chosen.max_blocks,
            max_predicted=chosen.max_predicted,
            ttl=chosen.predicted_ttl,
        )
        self.feed = Feed(self.index)
        self.queue = Queue(limit=chosen.queue_limit, patience=chosen.queue_patience)
        self.pace = Pace()
        self.trust = Trust()
        self.counts: Counter[str] = Counter()
        self._answers: list[Answer] = []  # to turns that lost their place in the queue
        self._over: dict[str, None] = {}

    def join(self, replica: str, info: Info) -> None:
        """Add a member; one of the same name is a new life. ValueError on a foreign block size."""
        self.feed.join(replica, info.block_size)
        self._drop(self.fleet.leave(replica))
        self.fleet.join(replica, info)

    def leave(self, replica: str) -> None:
        """Remove a member with all that is known of it. Strangers are no error."""
        self._drop(self.fleet.leave(replica))
        self.feed.leave(replica)

    def report(self, replica: str, report: Report) -> None:
        """Take in a member's own word on its load."""
        self.fleet.report(replica, report)

    def kv(self, replica: str, events: Iterable[KvEvent], *, number: int | None = None) -> bool:
        """Take in a batch of KV events. False: the view has a gap, fetch a snapshot of the
        replica's cache for `resync`. ValueError when a block size is not the member's.
        """
        return self.feed.take(replica, events, number)

    def resync(self, replica: str, events: Iterable[KvEvent], *, number: int | None = None) -> bool:
        """Replace the view of a member by a snapshot of its cache as of batch `number`."""
        return self.feed.resync(replica, events, number)

    def restock(
        self, replica: str, holdings: Mapping[int, int], *, number: int, first: bool, last: bool
    ) -> bool:
        """A part of a snapshot that names blocks by our hashes; see `Feed.restock`."""
        return self.feed.restock(replica, holdings, number, first=first, last=last)

    def told(self, replica: str, number: int) -> bool:
        """A member's own word on how many batches it has sent. False: fetch a snapshot of it."""
        return self.feed.told(replica, number)

    def choose(self, ask: Ask, now: float) -> Decision:
        """A replica with a reservation, a place in the queue, or a refusal."""
        self.expire(now)
        if not len(self.queue):
            placed = self._place(ask, now)
            if placed is not None:
                return placed
        gone = self.queue.push(ask, now) if self.queue.limit else ask
        if gone is ask:
            return self._refuse("saturated", now)
        if gone is not None:
            self._answers.append((gone, self._refuse("saturated", now)))
        return Queued(ask.turn, self.queue.ahead(ask.turn))

    def put(self, ask: Ask, choice: Choice, now: float) -> bool:
        """Count a turn that its ingress has placed by itself, in place of whatever the router has
        given it meanwhile. False, and nothing is changed, when it is counted already, when it is
        over (two messages under way may change places) or when its replica is no member.
        """
        known = self.fleet.reservations
        over = choice.reservation in known or choice.reservation in self._over
        if over or choice.replica not in self.fleet.replicas:
            return False
        with suppress(KeyError):  # it waits no more
            self.queue.serve(ask.turn)
        given = [r for r in known.values() if r.turn == ask.turn and not r.begun]
        for made in given:
            self.fleet.release(made.id)
        self._drop(given)
        found = self.index.walk(ask.hashes)
        self._reserve(ask, choice.replica, found, now, known_as=choice.reservation)
        self.counts["hashed"] += 1
        return True

    def admit(self, now: float) -> list[Answer]:
        """Answers for turns that waited: call it after every release, join and report, and once a
        second. A turn is answered exactly once.
        """
        self.expire(now)
        answers, self._answers = self._answers, []
        for ask in self.queue.line():
            placed = self._place(ask, now)
            if placed is not None:
                self.queue.serve(ask.turn)
                answers.append((ask, placed))
            elif not ask.exclude:
                break  # all are full; one that may not go everywhere holds up nobody else
        return answers

    def cancel(self, turn: str) -> bool:
        """Take a waiting turn out of the queue: its client left."""
        return self.queue.cancel(turn)

    def begun(self, reservation: str, now: float) -> bool:
        """The engine took the turn. False when the reservation is not there (any more)."""
        return self.fleet.begun(reservation, now)

    def first_token(self, reservation: str, now: float, cached_tokens: int = -1) -> bool:
        """The prefill is over; `cached_tokens` is what the engine's cache held, -1 if unknown."""
        made = self.fleet.first_token(reservation, now)
        if made is not None and cached_tokens >= 0:
            size = self.fleet.replicas[made.replica].info.block_size
            self.counts["promised"] += made.overlap_blocks
            self.counts["kept"] += min(made.overlap_blocks, cached_tokens // size)
            self.trust.saw(made.overlap_blocks, cached_tokens // size)
        return made is not None

    def release(self, reservation: str, now: float) -> bool:
        """End a reservation. True the first time only."""
        made = self.fleet.release(reservation)
        if made is None:
            self._over[reservation] = None
            if len(self._over) > OVER:
                del self._over[next(iter(self._over))]
            return False
        if made.begun:
            self.pace.ended(now - made.made)
        self._drop([made])
        return True

    def release_owner(self, owner: str) -> int:
        """End all reservations of an ingress that died; answers how many there were."""
        dropped = self.fleet.release_owner(owner)
        self._drop(dropped)
        return len(dropped)

    def expire(self, now: float) -> None:
        """End what is over: reservations, predictions, patience. `choose` and `admit` do it."""
        self._drop(self.fleet.expire(now))
        self.index.predictions.expire(now)
        for ask in self.queue.expire(now):
            self._answers.append((ask, self._refuse("waited_too_long", now)))

    def figures(self) -> dict[str, int]:
        """The state in numbers, as `observe.seen.RouterState` names them."""
        return {
            "replicas": len(self.fleet.replicas),
            "turns": sum(r.active for r in self.fleet.replicas.values()),
            "queued": len(self.queue),
            "blocks": len(self.index),
            "predicted": len(self.index.predictions),
            "promised": self.counts["promised"],
            "kept": self.counts["kept"],
            "gaps": self.feed.gaps,
            "lost": len(self.feed.lost),
            "astray": self.trust.astray,
            "alarm": int(self.trust.alarm),
        }

    def snapshot(self, now: float, *, blocks: bool = True) -> bytes:
        """Members, reservations and confirmed blocks, for `restore`.

        A million blocks take 40 ms to write and a second to restore: a large fleet leaves them out,
        and every member is `lost` after `restore` until its engine gives a view to `resync`.
        """
        members = [
            Member(
                name=r.name,
                info=r.info,
                report=r.report,
                foreign_turns=r.foreign_turns,
                foreign_prefill=r.foreign_prefill,
                last_chosen=r.last_chosen,
                heard=self.feed.heard.get(r.name, -1) if blocks else -1,
                lost=r.name in self.feed.lost or not blocks,
                holdings=self.index.holdings(r.name) if blocks else {},
            )
            for r in self.fleet.replicas.values()
        ]
        held = [
            replace(r, made=r.made - now, expires=r.expires - now, bucket=0)
            for r in self.fleet.reservations.values()
        ]
        return encode(State(VERSION, self.fleet.serial, self.pace.mean, members, held))

    def restore(self, data: bytes, now: float) -> None:
        """Go on from a snapshot; call it on a fresh router. ValueError when it is not one."""
        state = decode(data)
        for member in state.members:
            self.join(member.name, member.info)
            self.index.hold(member.name, member.holdings)
            if member.heard >= 0:
                self.feed.heard[member.name] = member.heard
            if member.lost:
                self.feed.lost.add(member.name)
        for made in (r for r in state.reservations if r.replica in self.fleet.replicas):
            self.fleet.put_on(replace(made, made=made.made + now, expires=made.expires + now))
        for member in state.members:
            replica = self.fleet.replicas[member.name]
            replica.report = member.report
            replica.foreign_turns = member.foreign_turns
            replica.foreign_prefill = member.foreign_prefill
            replica.last_chosen = member.last_chosen
        self.fleet.serial = state.serial
        self.pace = Pace(state.mean)

    def _place(self, ask: Ask, now: float) -> Choice | Refusal | None:
        """A choice now; a refusal when nobody could ever take the turn; None when all are full."""
        able = [r for r in self.fleet.replicas.values() if r.name not in ask.exclude]
        if not able:
            return self._refuse("no_replica", now)
        free = [r for r in able if not r.full]
        if not free:
            return None
        found = self.index.walk(ask.hashes)
        overlap, size = found[0], able[0].info.block_size
        chance = xxh3_64_intdigest(self.fleet.serial.to_bytes(8), self.settings.seed) / 2**64
        best, why = self._policy(View(ask, free, overlap, size, self.settings.tuning, chance))
        made = self._reserve(ask, best.name, found, now)
        self.counts[why] += 1
        return Choice(best.name, made.overlap_blocks, why, made.id)

    def _reserve(
        self,
        ask: Ask,
        replica: str,
        found: tuple[Mapping[str, int], int],
        now: float,
        *,
        known_as: str = "",
    ) -> Reservation:
        """`found` is what `PrefixIndex.walk` has found of the prompt."""
        overlap, solid = found
        shared, size = overlap.get(replica, 0), self.fleet.replicas[replica].info.block_size
        made = self.fleet.reserve(
            replica,
            turn=ask.turn,
            owner=ask.owner,
            uncached=max(1, ask.prompt_tokens - shared * size),
            prompt=ask.prompt_tokens,
            osl=DEFAULT_OSL if ask.osl is None else ask.osl,
            now=now,
            minding=minding(ask.latency),
            known_as=known_as,
        )
        made.overlap_blocks = shared
        made.bucket = self.index.predict(replica, ask.hashes[min(solid, shared) :], now)
        self.index.touch(ask.hashes[:shared])
        return made

    def _refuse(self, why: Refused, now: float) -> Refusal:
        self.counts[why] += 1
        active = sum(r.active for r in self.fleet.replicas.values())
        made = (r.made for r in self.fleet.reservations.values())
        return Refusal(why, self.pace.retry_after(len(self.queue), active, made, now))

    def _drop(self, over: Iterable[Reservation]) -> None:
        for made in over:
            if not made.begun:
                self.index.predictions.retract(made.bucket)
