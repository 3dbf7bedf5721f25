"""The ingress: one process that owns turns from the first byte of the request to the last.

It prepares a turn (prompt, hashes), has a replica chosen, begins it, and releases everything
exactly once. What it needs of the cluster it gets as small objects, so that it runs without one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator

from actors.conductor import Conductor, Flight
from actors.exchange import Exchange, StreamExchange
from actors.model_service import ChoiceTaken, ModelService
from protocols.models import ModelCard, unknown
from turns.turn import Turn

log = logging.getLogger(__name__)


class TurnWatch:
    """Keeps the router's books of one turn."""

    __slots__ = ("_model", "_taken")

    def __init__(self, model: ModelService, taken: ChoiceTaken) -> None:
        self._model = model
        self._taken = taken

    def began(self, cached: int) -> None:
        self._model.began(self._taken, cached)

    def landed(self) -> None:
        self._model.release(self._taken)


class Ingress:
    """Plain class; `deployments` puts the edge's ASGI application around it."""

    def __init__(
        self,
        conductor: Conductor,
        models: list[ModelService],
        *,
        max_body: int = 64 * 2**20,
        keepalive_s: float = 10.0,
    ) -> None:
        self.conductor = conductor
        self.models = models
        self.max_body = max_body
        self.keepalive_s = keepalive_s
        self._by_name = {name: m for m in models for name in (m.spec.name, *m.spec.aliases)}
        self._live: set[StreamExchange] = set()

    def model(self, name: str) -> ModelService:
        """The model of that name or alias. Raises UnknownModelError naming those there are."""
        model = self._by_name.get(name)
        if model is None:
            raise unknown(name, self.cards())
        return model

    def cards(self) -> list[ModelCard]:
        """What `GET /v1/models` lists: every name that a turn may use."""
        return [card for model in self.models for card in model.cards()]

    def now(self) -> int:
        return int(time.time())

    async def begin(
        self, model: ModelService, turn: Turn, exchange: Exchange, *, size: int
    ) -> Flight:
        """Prepare the turn, choose its replica, begin it. Raises TreadleError before any byte."""
        prompt = await model.prepare(turn, size=size)
        choice = await model.choose(turn, prompt)
        job = model.job(turn, prompt)

        watch = TurnWatch(model, choice)
        return self.conductor.begin(job, model.lease, choice.replica, exchange, watch)

    def leave(self, flight: Flight) -> None:
        """The response is over, or its client is gone: nothing of the turn remains."""
        self.conductor.cancel(flight)

    def defect(self, turn: str) -> None:
        log.exception("turn %s: a defect in the ingress", turn)

    @contextlib.contextmanager
    def kept_alive(self, exchange: StreamExchange) -> Iterator[None]:
        """While inside, keep-alives are written when the stream is silent."""
        self._live.add(exchange)
        try:
            yield
        finally:
            self._live.discard(exchange)

    async def keep_alive_forever(self) -> None:
        """One timer for all streams: a timer per stream would cost each of them."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.keepalive_s / 4)
            now = loop.time()
            for exchange in list(self._live):
                exchange.keep_alive(now, self.keepalive_s)
