"""The ingress deployment: an Ingress with the cluster's parts put in, behind the edge."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import msgspec
import ray

from actors import inline
from actors.cluster_calls import LeaseCalls, RouterCalls
from actors.conductor import Conductor
from actors.edge import AsgiApp
from actors.fleet import Fleet, fleet
from actors.ingress import Ingress
from actors.inline_parsing import InlineParsing
from actors.keeper import Keeper
from actors.lane_readers import LaneReaders
from actors.model_service import ModelService
from actors.serving import ModelFolder
from actors.vigil import Vigil
from deployments.console import GatewayRuns, Watched, routers
from deployments.edge import Outside, limits, names, past_turns, perseverance, replay
from deployments.exposure import exposed
from deployments.grpc_wakeups import never_wait, pair
from deployments.listening import listening_host
from deployments.model import model_spec
from deployments.settings import AppSettings, StoreSettings
from deployments.store import MEMORY
from observe.logs import Logs
from observe.metrics import Metrics
from observe.seen import RouterState, ToolRunEnded
from observe.taps import Tap, Taps
from observe.tracing import tracer
from sessions.guarded_store import GuardedStore
from sessions.memory_store import MemoryStore
from sessions.redis_store import RedisStore
from sessions.store import Store
from toolruns.budget import Purse


class IngressDeployment:
    """What Serve calls. Its HTTP side is the edge, built once the replica is."""

    async def __init__(  # type: ignore[misc] # Serve awaits it
        self, settings: dict[str, Any], router: Any, store: Any, engines: dict[str, Any]
    ) -> None:
        never_wait()
        chosen = AppSettings.model_validate(settings)
        if trouble := exposed(await listening_host(), chosen.access):
            raise RuntimeError(trouble)
        name = ray.get_runtime_context().get_actor_name() or ""
        metrics = Metrics([model.name for model in chosen.models])
        watched = Watched(chosen.console)
        taps = Taps(metrics, Logs(), *spans(chosen.observe.traces), *watched.taps)
        self._conductor = Conductor(perseverance(chosen))
        self._readers = LaneReaders(self._conductor, name, taps, near=chosen.lanes == "near")
        calls = RouterCalls(router, name)
        models = []
        for model in chosen.models:
            handle = engines[model.name]
            lease = LeaseCalls(handle, name)  # building it starts Serve's router, hence the fleet
            one = fleet(handle.deployment_name)
            folder = ModelFolder(model_spec(model))
            models.append(ModelService(folder, one, calls, lease, self._readers.hear))
            one.listen(_tell(calls, model.name))
            if chosen.parser == "actor":
                self._readers.follow(one)
        if chosen.parser == "inline":
            receive = InlineParsing(self._conductor, models).take
            inline.RECEIVERS.append((asyncio.get_running_loop(), receive))
        kept = await _store(store, taps, chosen.store)
        keeper = Keeper(kept, ttl=chosen.store.session_ttl_s)
        self.ingress = Ingress(
            self._conductor,
            models,
            keeper=keeper,
            replay=replay(chosen, kept, keeper, await store.secret.remote()),
            metrics=metrics,
            taps=taps,
            names=names(chosen, models),
            limits=limits(chosen),
            past=past_turns(chosen, kept),
            keepalive_s=chosen.ingress.keepalive_s,
            timeline=watched.recorder.timeline,
        )
        board = watched.board(kept, name, self.ingress.prefixes)
        shown = routers(
            chosen.console, self.ingress, kept, calls.fleet, GatewayRuns(chosen.console)
        )
        self._outside = Outside(chosen, self.ingress, kept, shown, name=short(name))
        await asyncio.gather(*(asyncio.to_thread(m.folder.warm) for m in models))
        gc.collect()
        gc.freeze()  # vocabularies and modules stay: the collector need not look at them per turn
        self._ticking = [
            asyncio.ensure_future(self.ingress.keep_alive_forever()),
            asyncio.ensure_future(calls.present_forever(_figures(taps))),
            asyncio.ensure_future(self._outside.gossip.run_forever()),
            asyncio.ensure_future(Vigil(self._conductor).keep()),
            asyncio.ensure_future(calls.obey_forever(self._conductor.park)),
            *([asyncio.ensure_future(board.run_forever())] if chosen.console.enabled else ()),
        ]

    def __serve_build_asgi_app__(self) -> AsgiApp:
        return self._outside.app

    async def __del__(self) -> None:
        """Serve awaits it when the last request is answered: responses in the background go on."""
        if hasattr(self, "_outside"):
            await self._outside.background.settled()
            await self._outside.gossip.end()

    async def decide(self, call_id: str, owner: str, text: str, schema: dict[str, Any]) -> str:
        """A decision round for a tool call that a model made through this ingress or another."""
        decision = await self._outside.decisions.decide(call_id, owner, text, schema)
        return decision.text

    async def purse(self, call_id: str, owner: str) -> Purse | None:
        """What the session has left that made a tool call through this ingress or another."""
        return await self._outside.purses.find(call_id, owner)

    async def tool_run_ended(self, ending: str, rows: int, seconds: float) -> None:
        """The gateway of the streaming tools tells of a run, to be counted and logged here."""
        seen = ToolRunEnded(time.time(), ending, rows, seconds)
        self.ingress.taps.tool_run_ended(seen)

    async def key(self, key_id: str) -> bytes:
        """What is kept of an API key, for the gate of the streaming tools; b"" if there is none."""
        found = await self._outside.keyring.find(key_id)
        return b"" if found is None else msgspec.msgpack.encode(found)

    async def probe(self) -> dict[str, Any]:
        """Counts for tests and operators. `wakeups`: whether each end of gRPC's pair may wait."""
        return {
            "turns": len(self._conductor),
            "lanes": sorted(self._readers.open),
            "wakeups": [end.getblocking() for end in pair()],
        }


async def _store(deployment: Any, tap: Tap, settings: StoreSettings) -> Store:
    """The store of this cluster, behind the guard that keeps its troubles from the turns."""
    url = await deployment.url.remote()
    store: Store = MemoryStore() if url == MEMORY else RedisStore(url)
    return GuardedStore(store, tap, timeout=settings.timeout_s)


def spans(endpoint: str) -> list[Tap]:
    """The tap that tells a collector of turns, where there is one."""
    made = tracer("turns", endpoint)
    if made is None:
        return []
    from observe.spans import TurnSpans  # noqa: PLC0415 - of an extra

    return [TurnSpans(made)]


def short(actor: str) -> str:
    """The name of this process in figures: `SERVE_REPLICA::app#ingress#4f2k` is `ingress-4f2k`."""
    return "-".join(actor.split("#")[-2:]) or "ingress"


def _tell(calls: RouterCalls, model: str) -> Any:
    """Pass on to the router which replicas came and left."""
    loop = asyncio.get_running_loop()

    def changed(_fleet: Fleet, came: frozenset[str], left: frozenset[str]) -> None:
        if came:
            loop.call_soon_threadsafe(calls.came, model, sorted(came))
        if left:
            loop.call_soon_threadsafe(calls.left, model, sorted(left))

    return changed


def _figures(taps: Tap) -> Callable[[dict[str, int]], None]:
    """Pass on to the taps what the router says of itself."""

    def heard(figures: dict[str, int]) -> None:
        if figures:
            taps.router_state(RouterState(at=time.time(), **figures))

    return heard
