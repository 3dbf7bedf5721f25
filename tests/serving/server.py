"""The whole server in one process and one event loop, behind uvicorn on a free loopback port.

Everything is real but Ray and the model: edge, ingress, router, replicas, scripted engines, parser,
store. What goes between actors on a cluster goes through the same calls and the same bytes here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import httpx
import uvicorn
from uvicorn.server import ServerState

from actors.cluster_calls import LeaseCalls, RouterCalls, RouterReports
from actors.conductor import Conductor
from actors.console_pages import ToolRuns, no_tool_runs
from actors.edge import AsgiApp
from actors.engine_replica import EngineReplica
from actors.engines.engine import Engine
from actors.engines.registry import make_engine
from actors.fleet import Fleet
from actors.ingress import Ingress
from actors.keeper import Keeper
from actors.model_service import ModelService
from actors.parsing import Parsing
from actors.router_actor import RouterActor
from actors.serving import ModelFolder, ModelSpec
from actors.straight import Straight
from actors.vigil import Vigil
from deployments.console import Watched, routers
from deployments.edge import Outside, limits, names, past_turns, perseverance, replay
from deployments.model import model_spec
from deployments.settings import AppSettings, ModelSettings
from observe.metrics import Metrics
from observe.seen import LaneLost
from observe.taps import Taps
from router.router import Settings as RouterOptions
from sessions.memory_store import MemoryStore
from sessions.store import Store
from tests.serving.handles import Engines, Near
from tests.serving.judging import Judged
from tests.serving.lanes import NearLanes
from tests.serving.recording import RecordingEngine

MODEL = "lab-model"
QUICK = {"inline": True}
"""Engine options: no pace of its own, and a request may bring its own rule."""


def settings(**changes: Any) -> AppSettings:
    """Settings of a server of one scripted model; `options` are its engine's. A full one refuses at
    once where a test has no queue on purpose.
    """
    options = QUICK | changes.pop("options", {})
    model = {"name": MODEL, "family": "qwen3", "engine": {"options": options}}
    model |= changes.pop("model", {})
    router = {"queue_limit": 0} | changes.pop("router", {})
    return AppSettings.model_validate({"models": [model], "router": router} | changes)


class Replica:
    """An engine replica with its engine, its lane, and the leases that its callers hold."""

    def __init__(
        self, name: str, model: ModelSettings, folder: ModelFolder, server: Server
    ) -> None:
        made = server.shared or make_engine(model.engine.kind, model.engine.options, folder)
        self.name = name
        self.engine = RecordingEngine(made)
        self.lanes = NearLanes(
            Parsing(*folder.parser_parts()), server.conductor.deliver, f"lane-{name}"
        )
        self.inner = EngineReplica(
            replica=name,
            model=model.name,
            engine=self.engine,
            lanes=self.lanes,
            reporter=RouterReports(Near(server.router)),
        )
        self._leases: set[asyncio.Future[bytes]] = set()

    def lease(self, job: bytes, ingress: str, replica: str) -> asyncio.Future[bytes]:
        """A lease as its caller holds it: it dies with the replica, and dying it ends the work."""
        work = asyncio.ensure_future(self.inner.lease(job, ingress, replica))
        held: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._leases.add(held)

        def over(_: Any) -> None:
            self._leases.discard(held)
            work.cancel()

        def done(_: Any) -> None:
            if not held.done() and not work.cancelled():
                error = work.exception()
                if error is None:
                    held.set_result(work.result())
                else:
                    held.set_exception(error)

        held.add_done_callback(over)
        work.add_done_callback(done)
        return held

    def held(self, legs: list[str], replica: str) -> asyncio.Future[list[str]]:
        """No answer ever while it is frozen."""
        answer = asyncio.get_running_loop().create_future()
        if not self.lanes.frozen:
            answer.set_result(self.inner.held(legs))
        return answer

    def freeze(self) -> None:
        """As its callers see a process that is stopped: it does nothing and says nothing."""
        self.lanes.frozen = True

    def die(self) -> None:
        """As its callers see the death of its process."""
        self.lanes.dead = True
        for held in [one for one in self._leases if not one.done()]:
            held.set_exception(ConnectionError("the replica died"))


class Server:
    """Use `serving()`. `url` is where it listens; `http` a client of it.

    `shared` is an engine that others use too, in place of one that the settings make.
    """

    def __init__(self, chosen: AppSettings, store: Store, shared: Engine | None = None) -> None:
        self.settings = chosen
        self.shared = shared
        self.store = store
        self.conductor = Conductor(perseverance(chosen))
        self.metrics = Metrics([model.name for model in chosen.models])
        self.watched = Watched(chosen.console)
        self.taps = Taps(self.metrics, *self.watched.taps)
        router = chosen.router
        self.router = RouterActor(
            RouterOptions(
                policy=router.policy,
                queue_limit=router.queue_limit,
                queue_patience=router.queue_patience_s,
            ),
            preempt=router.preempt,
        )
        self.calls = calls = RouterCalls(Near(self.router), "ingress")
        self.fleets: dict[str, Fleet] = {}
        self.replicas: dict[str, dict[str, Replica]] = {}
        services = []
        for model in chosen.models:
            folder = folder_of(model_spec(model))
            fleet = self.fleets[model.name] = Fleet()
            alive = self.replicas[model.name] = {
                name: Replica(name, model, folder, self)
                for name in (f"{model.name}#{n}" for n in range(model.engine.replicas))
            }
            services.append(
                ModelService(folder, fleet, calls, LeaseCalls(Engines(alive), "ingress"))
            )
        self.keeper = Keeper(store, ttl=chosen.store.session_ttl_s)
        self.ingress = Ingress(
            self.conductor,
            services,
            keeper=self.keeper,
            replay=replay(chosen, store, self.keeper, "the cluster's own"),
            metrics=self.metrics,
            taps=self.taps,
            names=names(chosen, services),
            limits=limits(chosen),
            past=past_turns(chosen, store),
            keepalive_s=chosen.ingress.keepalive_s,
            timeline=self.watched.recorder.timeline,
        )
        self.board = self.watched.board(store, "ingress", self.ingress.prefixes)
        self.runs: ToolRuns = no_tool_runs
        shown = routers(chosen.console, self.ingress, store, calls.fleet, self._told)
        self.outside = Outside(chosen, self.ingress, store, shown)
        self.outside.app = self.judged = Judged(self.outside.app)
        self.url = ""
        self.tasks: list[asyncio.Future[Any]] = []
        self._named = 100  # replicas that take the place of others count from here
        self.http = httpx.AsyncClient(verify=False)  # noqa: S501 - loading certificates takes 50 ms

    @property
    def replica(self) -> Replica:
        """The first replica of the first model."""
        return next(iter(next(iter(self.replicas.values())).values()))

    @property
    def engine(self) -> RecordingEngine:
        return self.replica.engine

    async def _told(self, what: str, asked: dict[str, Any]) -> tuple[int, bytes]:
        return await self.runs(what, asked)

    def says(self, *reply: Any, **rule: Any) -> None:
        """What every engine answers from now on: items of a scenario's reply."""
        for replica in self._all():
            replica.engine.says = {"reply": list(reply), **rule}

    def kill(self, replica: Replica) -> None:
        """End a replica in the middle of whatever it does."""
        self.leave(replica)
        replica.die()

    def leave(self, replica: Replica) -> None:
        """Take a replica out of the fleet; what it runs it runs on."""
        model = next(name for name, alive in self.replicas.items() if replica.name in alive)
        del self.replicas[model][replica.name]
        self._show(model)

    def lose_lane(self, replica: Replica) -> None:
        """End a replica's parser, as its ingress sees it."""
        replica.lanes.dead = True
        lost = self.conductor.lane_lost(replica.lanes.name)
        self.taps.lane_lost(LaneLost(replica.lanes.name, 0.0, "killed", lost))

    async def replace(self, dead: Replica) -> Replica:
        """Another replica in place of one that died, as Serve starts one."""
        await dead.inner.stop()
        model = next(m for m in self.settings.models if dead.name.startswith(f"{m.name}#"))
        await self.router.left(model.name, [dead.name])
        self._named += 1
        made = Replica(f"{model.name}#{self._named}", model, folder_of(model_spec(model)), self)
        await made.inner.start()
        self.replicas[model.name][made.name] = made
        self._show(model.name)
        await RouterReports(Near(self.router)).report(made.inner.card, made.inner.stats(), -1)
        return made

    def queued(self, model: str) -> int:
        """How many turns wait at the router."""
        return len(self.router._model(model).waiting)

    def reserved(self, model: str) -> int:
        """The places that the router holds."""
        return self.router._model(model).router.figures()["turns"]

    def _show(self, model: str) -> None:
        alive = self.replicas[model]
        self.fleets[model].replace({name: one.inner.card for name, one in alive.items()})

    def _all(self) -> list[Replica]:
        return [one for alive in self.replicas.values() for one in alive.values()]

    async def start(self) -> None:
        for replica in self._all():
            await replica.inner.start()
        for model, alive in self.replicas.items():
            self._show(model)
            for one in alive.values():  # as their reporters do; a test need not wait for them
                await RouterReports(Near(self.router)).report(one.inner.card, one.inner.stats(), -1)

    async def stop(self) -> None:
        await asyncio.gather(*self.tasks)
        await self.outside.background.stop()
        for replica in self._all():
            await replica.inner.stop()
        await self.keeper.settled()
        await self.ingress.prefixes.settled()
        await self.calls.settled()
        await self.outside.calls.settled()


@cache
def _folder(folder: str, family: str, made: str) -> ModelFolder:
    return ModelFolder(ModelSpec("", folder, family, made))


def folder_of(spec: ModelSpec) -> ModelFolder:
    """The model's folder, what is slow to read of it read once per test session."""
    mine = ModelFolder(spec)
    known = _folder(spec.folder, spec.family, spec.made)
    for name in ("path", "family", "grammar"):
        mine.__dict__[name] = getattr(known, name)
    if spec.prompt == known.spec.prompt:
        mine.__dict__["prompter"] = known.prompter
    return mine


@contextlib.asynccontextmanager
async def listening(app: AsgiApp) -> AsyncIterator[str]:
    """An ASGI application on a free loopback port, as Serve starts uvicorn; gives its URL."""
    config = uvicorn.Config(Straight(app), lifespan="off", access_log=False, log_config=None)
    config.load()
    state = ServerState()
    sock = socket.socket()
    # Small, so that a client that does not read is felt before megabytes are under way.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**16)
    sock.bind(("127.0.0.1", 0))
    listener = await asyncio.get_running_loop().create_server(
        lambda: config.http_protocol_class(config=config, server_state=state, app_state={}),
        sock=sock,
    )
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        listener.close()
        for connection in list(state.connections):
            connection.shutdown()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def serving(
    chosen: AppSettings | None = None,
    *,
    store: Store | None = None,
    engine: Engine | None = None,
) -> AsyncIterator[Server]:
    """A running server; it ends with the block, and fails it when a stream of it was not right."""
    chosen = chosen or settings()
    server = Server(chosen, store or MemoryStore(), engine)
    await server.start()
    ticking = [
        asyncio.ensure_future(server.ingress.keep_alive_forever()),
        asyncio.ensure_future(Vigil(server.conductor).keep()),
        asyncio.ensure_future(server.calls.obey_forever(server.conductor.park)),
    ]
    if chosen.console.enabled:
        ticking.append(asyncio.ensure_future(server.board.run_forever()))
    try:
        async with listening(server.outside.app) as url:
            server.url = url
            async with httpx.AsyncClient(base_url=url, timeout=30) as server.http:
                yield server
    finally:
        for task in ticking:
            task.cancel()
        await asyncio.wait(ticking)
        await server.stop()
    server.judged.check()
