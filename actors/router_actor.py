"""The router actor: the pure router of each model, with a clock and callers.

One replica in the cluster. It learns the fleet from the engines' own reports and answers `choose`
in one call, reservation included. When it restarts, reports and KV events fill it again; until
then ingresses fall back to hashing.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from actors.engines.engine import EngineStats
from actors.fleet_load import ModelLoad, replica_load
from actors.messages import Placement, ReplicaCard, Told, encode
from actors.preemption import Orders, Preemption
from router.decision import Ask, Choice, Decision, Queued, Refusal
from router.kv import KvEvent
from router.load import Info, Report
from router.router import Router, Settings

SILENT_FOR = 10.0
"""Seconds without a word after which a replica or an ingress is taken for gone."""

UNCLAIMED_FOR = 10.0
"""Seconds after which a place given to a queued turn is given up if nobody came for it."""

FORMER = 1000
"""Replicas remembered after Serve let them go, of each model."""

GONE = Refusal("waited_too_long", 1)

TICK = 0.25
"""Seconds between two looks at what has run out: patience, reservations, silent replicas."""

decode_ask = msgspec.msgpack.Decoder(Ask).decode
decode_card = msgspec.msgpack.Decoder(ReplicaCard).decode
decode_stats = msgspec.msgpack.Decoder(EngineStats).decode
decode_holdings = msgspec.msgpack.Decoder(dict[int, int]).decode
decode_kv = msgspec.msgpack.Decoder(list[KvEvent]).decode
decode_told = msgspec.msgpack.Decoder(list[Told]).decode


class ModelRouter:
    """One model's router, the times of its replicas' reports, and who waits for an answer.

    `former` are the latest replicas that Serve has let go. `orders` is where turns are told to make
    room; None where none has to.
    """

    def __init__(self, settings: Settings, orders: Orders | None) -> None:
        self.router = Router(settings)
        self.orders = orders
        self.preemption = Preemption()
        self.heard: dict[str, float] = {}
        self.stats: dict[str, EngineStats] = {}
        self.waiting: dict[str, asyncio.Future[Decision]] = {}
        self.former: OrderedDict[str, None] = OrderedDict()

    def placed(self, ask: Ask, decision: Decision) -> None:
        """Note who has a place."""
        if self.orders is not None and isinstance(decision, Choice):
            self.preemption.placed(ask, decision)

    def make_room(self, ask: Ask, tried: frozenset[str] = frozenset()) -> None:
        """Have a place given up for a more urgent turn, if that waits."""
        waiter = self.waiting.get(ask.turn)
        if self.orders is None or waiter is None or waiter.done():
            return
        place = self.preemption.victim(ask, self.router.fleet.reservations, tried)
        if place is not None:
            self.orders.park(place.owner, place.turn)

    def stays(self, turn: str) -> None:
        """A turn that was to make room cannot; another has to."""
        order = self.preemption.stays(turn)
        if order is not None:
            self.make_room(order.ask, order.tried)

    def put(self, ask: Ask, choice: Choice, now: float) -> None:
        """Count a turn that its ingress has placed; nobody waits for a place for it any more."""
        self.gone(ask.turn, now)
        if self.router.put(ask, choice, now):
            self.placed(ask, choice)

    def answer(self, now: float) -> None:
        """Give turns that waited in the queue what the router has decided for them."""
        for ask, decision in self.router.admit(now):
            self.placed(ask, decision)
            waiter = self.waiting.get(ask.turn)
            if waiter is not None and not waiter.done():
                waiter.set_result(decision)
                waiter.get_loop().call_later(UNCLAIMED_FOR, self._unclaimed, ask.turn, waiter, now)
            elif isinstance(decision, Choice):
                self.router.release(decision.reservation, now)

    def _unclaimed(self, turn: str, waiter: asyncio.Future[Decision], now: float) -> None:
        if self.waiting.get(turn) is waiter:
            self.gone(turn, now)

    def gone(self, turn: str, now: float) -> None:
        """Nobody waits for that turn: out of the queue, or its place given up if it has one."""
        waiter = self.waiting.pop(turn, None)
        if waiter is None:  # its answer is on its way to who asked
            return
        if not waiter.done():
            self.router.cancel(turn)
            waiter.set_result(GONE)
        elif isinstance(decision := waiter.result(), Choice):
            self.router.release(decision.reservation, now)


def silent(heard: dict[str, float], now: float) -> list[str]:
    """Take out those that were not heard for `SILENT_FOR`."""
    gone = [name for name, at in heard.items() if now - at > SILENT_FOR]
    for name in gone:
        del heard[name]
    return gone


def summed(all_figures: list[dict[str, int]]) -> dict[str, int]:
    """Figures of several models in one: shares and alarms are those of the worst."""
    found: dict[str, int] = {}
    for figures in all_figures:
        for name, value in figures.items():
            worst = name in ("astray", "alarm")
            before = found.get(name, 0)
            found[name] = max(before, value) if worst else before + value
    return found


class RouterActor:
    """Plain class; all arguments and answers are msgpack bytes."""

    def __init__(
        self,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        preempt: bool = False,
    ) -> None:
        self._settings = settings or Settings()
        self._orders = Orders()
        self._preempt = preempt
        self._clock = clock
        self._models: dict[str, ModelRouter] = {}
        self._ingresses: dict[str, float] = {}

    def _model(self, name: str) -> ModelRouter:
        model = self._models.get(name)
        if model is None:
            orders = self._orders if self._preempt else None
            model = self._models[name] = ModelRouter(self._settings, orders)
        return model

    async def choose(self, model: str, data: bytes) -> bytes:
        """A Decision for an Ask. When it is Queued, `admitted` gives the final one."""
        ask, one = decode_ask(data), self._model(model)
        now = self._clock()
        if ask.owner:
            self._ingresses[ask.owner] = now
        decision = one.router.choose(ask, now)
        if isinstance(decision, Queued):
            one.waiting[ask.turn] = asyncio.get_running_loop().create_future()
        one.placed(ask, decision)
        if isinstance(decision, Queued):  # perhaps behind some who may not go where there is room
            one.answer(now)
            one.make_room(ask)
        return encode(decision)

    async def orders(self, ingress: str) -> list[str]:
        """The turns of this ingress that have to make room, waited for; [] after a while."""
        return await self._orders.take(ingress)

    async def stays(self, turn: str) -> None:
        """A turn that was told to make room is where it was: its ingress may not park it."""
        for one in self._models.values():
            one.stays(turn)

    async def admitted(self, model: str, turn: str) -> bytes:
        """Wait for a queued turn's answer. Leaving (a cancelled call) takes it out of the queue."""
        one = self._model(model)
        waiter = one.waiting.get(turn)
        if waiter is None:
            return encode(GONE)
        try:
            answer = await asyncio.shield(waiter)
        except asyncio.CancelledError:
            one.gone(turn, self._clock())
            raise
        one.waiting.pop(turn, None)
        return encode(answer)

    async def gone(self, model: str, turn: str) -> None:
        """A queued turn's client left, or its ingress waits no longer."""
        self._model(model).gone(turn, self._clock())

    async def settle(self, data: bytes) -> None:
        """Turns that began on their replica, reservations that are over, and turns that their
        ingress has placed by itself.
        """
        now = self._clock()
        for told in decode_told(data):
            one = self._model(told.model)
            router = one.router
            if isinstance(told, Placement):
                one.put(told.ask, told.choice, now)
            elif told.over:
                router.release(told.reservation, now)
                one.preemption.over(told.reservation)
            else:
                router.begun(told.reservation, now)
                router.first_token(told.reservation, now, told.cached)
        self._answer(now)

    async def report(self, card_data: bytes, stats_data: bytes, told: int = -1) -> bool:
        """A replica's card and load; the first one makes it a member, unless Serve has let it go.

        `told` is the number of its last batch of KV events; False asks for a snapshot.
        """
        card, stats = decode_card(card_data), decode_stats(stats_data)
        one, now = self._model(card.model), self._clock()
        if card.replica in one.former:
            return True
        one.heard[card.replica] = now
        one.stats[card.replica] = stats
        if card.replica not in one.router.fleet.replicas:
            one.router.join(card.replica, Info(card.block_size, card.max_turns, card.kv_blocks))
        load = Report(stats.running, stats.waiting, stats.prefill_tokens, stats.kv_used)
        one.router.report(card.replica, load)
        one.answer(now)
        return one.router.told(card.replica, told)

    async def present(self, ingress: str) -> dict[str, int]:
        """An ingress lives. One that falls silent has died, and its turns with it.

        It is told the figures of all models: sums, and the worst of what says how wrong they are.
        """
        self._ingresses[ingress] = self._clock()
        return summed([one.router.figures() for one in self._models.values()])

    async def kv(self, model: str, replica: str, number: int, data: bytes) -> bool:
        """A numbered batch of a replica's KV events; False asks for a snapshot of its cache."""
        return self._model(model).router.kv(replica, decode_kv(data), number=number)

    async def restock(
        self, model: str, replica: str, number: int, data: bytes, *, first: bool, last: bool
    ) -> bool:
        """A part of a snapshot of a replica's cache, as of that batch."""
        holdings, router = decode_holdings(data), self._model(model).router
        return router.restock(replica, holdings, number=number, first=first, last=last)

    async def came(self, model: str, replicas: list[str]) -> None:
        """Replicas that Serve knows now: their next report makes them members."""
        one = self._model(model)
        for replica in replicas:
            one.former.pop(replica, None)
        one.router.queue.welcome(frozenset(replicas))
        one.answer(self._clock())

    async def left(self, model: str, replicas: list[str]) -> None:
        """Replicas that Serve no longer knows. One that drains still reports: it is not heard."""
        one = self._model(model)
        for replica in replicas:
            one.heard.pop(replica, None)
            one.former[replica] = None
            while len(one.former) > FORMER:
                one.former.popitem(last=False)
            one.router.leave(replica)
        one.answer(self._clock())

    async def queued(self, model: str) -> int:
        """How many turns wait for a place: what a fleet grows by."""
        return len(self._model(model).router.queue)

    async def load(self) -> dict[str, dict[str, dict[str, int]]]:
        """What each replica has on its hands, by model: for tests, metrics and the console."""
        return {
            name: {
                r.name: {
                    "turns": r.turns,
                    "active": r.active,
                    "prefill": r.prefill,
                    "reported": r.report.running,
                }
                for r in one.router.fleet.replicas.values()
            }
            for name, one in self._models.items()
        }

    async def fleet(self) -> bytes:
        """Each model's engines and their load, as `list[ModelLoad]`."""
        now = self._clock()
        found = []
        for name, one in self._models.items():
            members = one.router.fleet.replicas
            one.stats = {r: stats for r, stats in one.stats.items() if r in members}
            replicas = [
                replica_load(
                    r, one.stats.get(r.name, EngineStats()), now - one.heard.get(r.name, now)
                )
                for r in members.values()
            ]
            figures = one.router.figures()
            found.append(ModelLoad(name, figures["queued"], figures, replicas))
        return encode(found)

    async def figures(self) -> dict[str, dict[str, int]]:
        """The state of each model's router in numbers, as `Router.figures` names them."""
        return {name: one.router.figures() for name, one in self._models.items()}

    async def tick_forever(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self.tick()

    def tick(self) -> None:
        """Forget who has been silent for too long, and answer turns that wait."""
        now = self._clock()
        for one in self._models.values():
            for replica in silent(one.heard, now):
                one.router.leave(replica)
        for ingress in silent(self._ingresses, now):
            self._orders.forget(ingress)
            for one in self._models.values():
                one.router.release_owner(ingress)
        self._answer(now)

    def _answer(self, now: float) -> None:
        for one in self._models.values():
            one.answer(now)
