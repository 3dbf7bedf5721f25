"""Calls across the cluster, as the small interfaces that the plain classes ask for.

`handle` is a Serve deployment handle, built once by the wiring and never per request.

Serve ends a request whose client left together with all calls that were made on its behalf, known
by the context they are made in. Ours are made in a context of their own: what must end with a turn
is ended by its owner, and a message that many turns share is not lost with one of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.engines.engine import EngineStats, KvEvent
from actors.fleet_load import ModelLoad, decode_load
from actors.messages import Placement, ReplicaCard, Settlement, Told, encode
from router.decision import Ask, Choice, Decision

log = logging.getLogger(__name__)

decode_decision = msgspec.msgpack.Decoder(Decision).decode

PRESENT_EVERY = 2.0
"""Seconds between two signs of life of an ingress."""

SETTLE_EVERY = 0.02
"""Seconds for which settlements are collected into one call."""

MEMBERS_WITHIN = 10.0
"""Seconds in which the router takes a word on who is a member."""


def apart(method: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a handle in a context of its own."""
    return Context().run(method.remote, *args, **kwargs)


class RouterCalls:
    """The router actor behind a handle. `ingress` is who asks: its reservations end with it."""

    def __init__(self, handle: Any, ingress: str) -> None:
        self._ingress = ingress
        self._present = handle.present
        # A method taken from a handle is a handle of its own: once, not per call.
        self._choose, self._admitted, self._gone = handle.choose, handle.admitted, handle.gone
        self._settle_all, self._left, self._came = handle.settle, handle.left, handle.came
        self._orders, self._stays = handle.orders, handle.stays
        self._fleet = handle.fleet
        self._told: list[Told] = []
        self._telling: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._words: dict[tuple[str, str], bool] = {}  # model, replica -> whether it is here
        self._saying = False

    async def choose(self, model: str, ask: Ask) -> Decision:
        asked = encode(replace(ask, owner=self._ingress))
        return decode_decision(await apart(self._choose, model, asked))

    async def admitted(self, model: str, turn: str) -> Decision:
        """The answer for a turn that was queued; may take as long as the router lets it wait."""
        return decode_decision(await apart(self._admitted, model, turn))

    def gone(self, model: str, turn: str) -> None:
        """Take a turn out of the queue, or give up the place that it was given meanwhile."""
        self._spawn(apart(self._gone, model, turn))

    def began(self, model: str, choice: Choice, cached: int) -> None:
        self._tell(Settlement(model, choice.reservation, over=False, cached=cached))

    def release(self, model: str, choice: Choice) -> None:
        self._tell(Settlement(model, choice.reservation, over=True))

    def placed(self, model: str, ask: Ask, choice: Choice) -> None:
        """The ingress has placed a turn by itself."""
        self._tell(Placement(model, replace(ask, owner=self._ingress), choice))

    async def settled(self) -> None:
        """Until the router has been told all of it."""
        while self._tasks or self._telling is not None:
            await asyncio.wait([*self._tasks, *([self._telling] if self._telling else [])])

    def _tell(self, told: Told) -> None:
        self._told.append(told)
        if self._telling is None:
            self._telling = asyncio.ensure_future(self._tell_all())

    async def _tell_all(self) -> None:
        """Two calls under way may change places, which is harmless; to wait would hold up turns."""
        await asyncio.sleep(SETTLE_EVERY)
        told, self._told, self._telling = self._told, [], None
        self._spawn(apart(self._settle_all, encode(told)))

    async def present_forever(self, heard: Callable[[dict[str, int]], None] | None = None) -> None:
        """Tell the router again and again that this ingress lives; `heard` gets its figures."""
        while True:
            await _quiet(self._be_present(heard))
            await asyncio.sleep(PRESENT_EVERY)

    async def _be_present(self, heard: Callable[[dict[str, int]], None] | None) -> None:
        figures = await apart(self._present, self._ingress)
        if heard is not None:
            heard(figures)

    def came(self, model: str, replicas: Sequence[str]) -> None:
        """Tell the router which replicas Serve knows now."""
        self._word(model, replicas, here=True)

    async def obey_forever(self, park: Callable[[str], bool]) -> None:
        """Have each turn parked that the router wants parked; it hears of those that stay."""
        while True:
            try:
                turns = await apart(self._orders, self._ingress)
            except Exception as error:  # noqa: BLE001 - the router may be restarting
                log.warning("the router gave no orders: %s", type(error).__name__)
                await asyncio.sleep(PRESENT_EVERY)
                continue
            for turn in turns:
                if not park(turn):
                    self._spawn(apart(self._stays, turn))

    async def fleet(self) -> list[ModelLoad]:
        """Each model's engines and their load."""
        return decode_load(await apart(self._fleet))

    def left(self, model: str, replicas: Sequence[str]) -> None:
        """Tell the router which replicas Serve no longer knows."""
        self._word(model, replicas, here=False)

    def _word(self, model: str, replicas: Sequence[str], *, here: bool) -> None:
        self._words |= {(model, replica): here for replica in replicas}
        if not self._saying:
            self._saying = True
            self._spawn(self._say_members())

    async def _say_members(self) -> None:
        """The last word on each replica, one call at a time and until it is taken: of two under way
        either may come first, and a replica that left after it came would be out for good.
        """
        try:
            while self._words:
                (model, replica), here = next(iter(self._words.items()))
                alike = [r for (m, r), h in self._words.items() if (m, h) == (model, here)]
                try:
                    async with asyncio.timeout(MEMBERS_WITHIN):
                        await apart(self._came if here else self._left, model, alike)
                except Exception as error:  # noqa: BLE001 - the router may be restarting
                    log.warning("the router did not hear of members: %s", type(error).__name__)
                    await asyncio.sleep(PRESENT_EVERY)
                    continue
                for replica in alike:
                    if self._words.get((model, replica)) == here:
                        del self._words[model, replica]
        finally:
            self._saying = False

    def _spawn(self, call: Any) -> asyncio.Future[None]:
        task = asyncio.ensure_future(_quiet(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _quiet(call: Any) -> None:
    """Await a call whose loss costs nothing: reservations expire, membership is told again."""
    try:
        await call
    except Exception as error:  # noqa: BLE001 - see above; the router may be restarting
        log.warning("the router did not take a message: %s", type(error).__name__)


class LeaseCalls:
    """Leases on the replicas of one engine deployment, for one ingress."""

    def __init__(self, handle: Any, ingress: str) -> None:
        self._lease, self._held = handle.lease, handle.held
        self._ingress = ingress

    def __call__(self, job: bytes, replica: str) -> Any:
        return apart(self._lease, job, self._ingress, replica=replica)

    def held(self, legs: list[str], replica: str) -> Any:
        return apart(self._held, legs, replica=replica)


class RouterReports:
    """What an engine replica tells the router."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    async def report(self, card: ReplicaCard, stats: EngineStats, told: int) -> bool:
        return bool(await self._handle.report.remote(encode(card), encode(stats), told))

    async def kv(self, model: str, replica: str, number: int, events: Sequence[KvEvent]) -> bool:
        return bool(await self._handle.kv.remote(model, replica, number, encode(list(events))))

    async def restock(
        self,
        model: str,
        replica: str,
        number: int,
        holdings: Mapping[int, int],
        *,
        first: bool,
        last: bool,
    ) -> bool:
        part = encode(holdings)
        call = self._handle.restock.remote(model, replica, number, part, first=first, last=last)
        return bool(await call)
