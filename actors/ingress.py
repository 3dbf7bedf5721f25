"""The ingress: one process that owns turns from the first byte of the request to the last.

It prepares a turn (prompt, hashes), has a replica chosen, begins it, and releases everything
exactly once. What it needs of the cluster it gets as small objects, so that it runs without one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence

from access.keys import UNLIMITED, Allowance
from actors import fitting
from actors.conductor import Conductor
from actors.exchange import Exchange, Silent
from actors.flights import Flight
from actors.hinting import Hinting
from actors.keeper import Keeper
from actors.model_names import ModelNames
from actors.model_service import ModelService
from actors.prefixes import Prefixes
from actors.reception import Limits
from actors.replay import Prepared, Replay
from actors.turn_watch import Heard, Remember, TurnWatch
from actors.warming import Ended, Warmer
from observe.metrics import Metrics
from observe.record import Timeline
from observe.seen import Names, RequestRefused, TurnEnded, TurnFailed, TurnReceived
from observe.taps import Tap
from sessions.past_turns import PastTurns
from turns.errors import TreadleError
from turns.events import Usage
from turns.reply import Reply
from turns.turn import Api, Turn

log = logging.getLogger(__name__)


class Ingress:
    """Plain class; `deployments` puts the edge's ASGI application around it."""

    def __init__(
        self,
        conductor: Conductor,
        models: list[ModelService],
        *,
        keeper: Keeper,
        replay: Replay,
        metrics: Metrics,
        taps: Tap,
        names: ModelNames | None = None,
        limits: Limits | None = None,
        past: PastTurns | None = None,
        keepalive_s: float = 10.0,
        timeline: Callable[[str], Timeline | None] = lambda _: None,
    ) -> None:
        self.conductor = conductor
        self.models = models
        self.taps = taps
        self._metrics = metrics
        self.keeper = keeper
        self._hinting = Hinting(keeper)
        self.warmer = Warmer(conductor, keeper)
        self._timeline = timeline
        self.replay = replay
        self.limits = limits or Limits()
        self.keepalive_s = keepalive_s
        self.names = names or ModelNames(models)
        self.prefixes = Prefixes(metrics.prefix_break, self.names.model, past)
        self._live: set[Silent] = set()

    async def prepared(self, model: ModelService, turn: Turn, *, size: int, owner: str) -> Prepared:
        """The turn's prompt, however long: what is counted is what is generated from."""
        prompter = model.folder.prompter
        return await self.replay.prepare(prompter, turn, size=size, owner=owner)

    async def begin(
        self,
        turn: Turn,
        exchange: Exchange,
        *,
        size: int,
        owner: str,
        request: str,
        harness: str,
        ignored: Sequence[str] = (),
        allowed: Allowance = UNLIMITED,
    ) -> Flight:
        """Prepare the turn, choose its replica, begin it. Raises TreadleError before any byte.

        `size` is what there is to render, in bytes; `ignored` what nobody acts on; `allowed` bounds
        how urgent it may be.
        """
        model = self.names.model(turn.model)
        names = Names(turn.id, request, turn.session, turn.api, model.spec.name)
        told = TurnReceived(names, time.time(), turn.stream, harness, tuple(ignored), owner)
        heard = self._received(told, exchange)
        kept = self._hinting.received(turn, owner=owner, harness=harness, at=heard.at)
        self.warmer.begun(owner, turn.session)
        try:
            prepared = await self.prepared(model, turn, size=size, owner=owner)
            if fitting.asked(turn) and not model.admits(prepared.prompt):
                prepared, exchange.dropped = await self._fitted(model, prepared, size, owner)
                turn = prepared.turn
            prompt = prepared.prompt
            self._metrics.prepared(
                model.spec.name,
                prepared.stages,
                replies=(prompt.spliced, len(prepared.plan.memories)),
                memo=model.folder.prompter.tokenizer.cache,
            )
            model.admit(turn, prompt)
            turn = await self._hinting.filled(turn, kept, allowed, owner=owner)
            watch = TurnWatch(
                heard,
                model=model,
                turn=turn,
                prompt=prompt,
                pinned=self.warmer.pinned(owner, turn.session),
                fold=exchange.fold,
                pace=exchange.pace,
                taps=self.taps,
                keeper=self.keeper,
                remember=self._remembering(model, turn, prepared, exchange, size=size),
            )
            replicas = await watch.choose()
        except BaseException as error:
            self._never_begun(heard, error)
            raise
        try:
            job = model.job(turn, prepared.prompt)
            return self.conductor.begin(job, model.lease, replicas, exchange, watch)
        except Exception as error:
            watch.leave()
            self._never_begun(heard, error)
            raise

    def _received(self, told: TurnReceived, exchange: Exchange) -> Heard:
        self.taps.turn_received(told)
        exchange.timeline = self._timeline(told.names.turn)
        return Heard(told.names, told.at, owner=told.owner)

    async def _fitted(
        self, model: ModelService, whole: Prepared, size: int, owner: str
    ) -> tuple[Prepared, int]:
        async def prepare(turn: Turn) -> Prepared:
            return await self.prepared(model, turn, size=size, owner=owner)

        fitted, dropped = await fitting.fitted(prepare, whole, model.context_window)
        self._metrics.truncated(whole.turn.api, dropped)
        return fitted, dropped

    def _remembering(
        self,
        model: ModelService,
        turn: Turn,
        prepared: Prepared,
        exchange: Exchange,
        *,
        size: int,
    ) -> Remember:
        """What the turn generates is in the ledger before its client can go on from it."""
        exchange.keeps = True
        owner, hints = prepared.owner, turn.hints

        async def prepare(following: Turn) -> Prepared:
            return await self.prepared(model, following, size=size, owner=owner)

        def remember(reply: Reply, output: Sequence[int], replica: str) -> None:
            prompter = model.folder.prompter
            exchange.keeping = self.replay.remember(prompter, prepared, reply, output)
            self.prefixes.ended(prompter, prepared, reply, output)
            self._hinting.replied(turn, reply.usage.output, owner=owner)
            ended = Ended(
                model,
                prepared,
                replica,
                reply,
                [*prepared.prompt.ids, *output[:-1]],
                retain_s=hints.retain_s,
                speculate=hints.speculative_prefill,
                final=hints.final,
            )
            self.warmer.ended(ended, prepare, exchange.keeping)

        return remember

    def _never_begun(self, heard: Heard, error: BaseException) -> None:
        """Tell how a turn was over before it began: refused, broken, or left by its client."""
        names, now = heard.names, time.time()
        if isinstance(error, asyncio.CancelledError):
            ended = TurnEnded(names, now, "cancelled", Usage(), now - heard.at)
            self.taps.turn_ended(ended)
            return
        kind = error.kind if isinstance(error, TreadleError) else "internal"
        self.taps.turn_failed(TurnFailed(names, now, kind, str(error), now - heard.at))

    def leave(self, flight: Flight) -> None:
        """The response is over, or its client is gone: nothing of the turn remains."""
        self.conductor.cancel(flight)

    def decoded(self, turn: Turn, seconds: float) -> None:
        """A request was read in so many seconds."""
        self._metrics.decoded(self.names.model(turn.model).spec.name, seconds)

    def brake(self, flight: Flight, on: bool) -> None:
        """The turn's client is behind, or has caught up: no more is generated than it reads."""
        if on:
            self.conductor.hold(flight)
        else:
            self.conductor.resume(flight)

    def refused(self, api: Api, request: str, error: TreadleError) -> None:
        """A request that never became a turn."""
        self.taps.request_refused(
            RequestRefused(request, api, time.time(), error.kind, error.message)
        )

    def defect(self, turn: str, error: Exception) -> None:
        """Log a defect of ours; the client gets no more than the turn's id."""
        log.error("turn %s: a defect in the ingress", turn, exc_info=error)

    @property
    def figures(self) -> Metrics:
        """What this process counts, as it is now."""
        self._metrics.lane_depths(self.conductor.by_lane().values())
        return self._metrics

    @contextlib.contextmanager
    def kept_alive(self, exchange: Silent) -> Iterator[None]:
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
            self.warmer.refresh()
            for exchange in list(self._live):
                exchange.keep_alive(now, self.keepalive_s)
