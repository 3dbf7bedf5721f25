"""The tools deployment: a Gateway with its sources, its rows and its owners put in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray import serve

from access.keys import Key
from actors.doorkeeper import LookUp
from actors.edge import AsgiApp
from actors.gate import PRINCIPAL, Gate
from deployments.access import doorkeeper
from deployments.grpc_wakeups import never_wait
from deployments.model import ROOT
from deployments.settings import AccessSettings
from deployments.tool_settings import ToolSettings
from observe.audit import Audit
from observe.tracing import tracer
from protocols.registry import APIS
from toolruns.budget import Purse
from toolruns.decisions import Question
from toolruns.gateway.app import Gateway
from toolruns.gateway.caller import Caller
from toolruns.gateway.calls import Calls, Result, Settings
from toolruns.gateway.declared import load
from toolruns.gateway.spans import Spans
from toolruns.gateway.trajectories import Trajectories
from toolruns.rows.books import FolderBook, RedisBook
from toolruns.rows.handles import Book, Record
from toolruns.rows.keeper import Keeper
from toolruns.rows.sandbox import Sandbox
from toolruns.rows.store import RowStore
from toolruns.tool import Tool
from turns.errors import TreadleError, UnavailableError

ANONYMOUS = "anonymous"
FOLDER = "folder"
PATIENCE_S = 5.0
"""Seconds that a look-up of a key may take."""


class ToolGateway:
    """What Serve calls: the gateway is its HTTP side, run by the lifespan that Serve runs."""

    def __init__(self, settings: dict[str, Any]) -> None:
        never_wait()
        chosen = ToolSettings.model_validate(settings)
        root = Path(chosen.folder) if chosen.folder else directory()
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        node = ray.get_runtime_context().get_node_id()
        asking, peers = Asking(chosen.models), Peers()
        self._name = peers.name
        book = _book(chosen.book, root)
        keeper = Telling(
            book, RowStore(root), node=node, holder=peers.name, told=Knowing(chosen.models)
        )
        sandbox = Sandbox(root, at_once=chosen.drilldowns_at_once)
        self._calls = Calls(
            declared(chosen),
            keeper,
            sandbox,
            settings=Settings(
                decisions=chosen.decisions,
                most_runs=chosen.streams_per_owner,
                timeouts=chosen.timeouts,
            ),
            elsewhere=peers.at if chosen.replicas > 1 else None,
            decide=None if chosen.decisions == "off" else asking.ask,
            purse_of=asking.purse if chosen.inherit else None,
            spans=None if (made := tracer("toolruns", chosen.traces)) is None else Spans(made),
        )
        self._trajectories = Trajectories(self._calls.tools, keeper, sandbox)
        gateway = Gateway(
            self._calls,
            authenticate=principal,
            allowed_hosts=list(chosen.allowed_hosts) or None,
            always_load=chosen.always_load,
        )
        self._app = guarded(gateway, chosen.access, Knowing(chosen.models).key)

    def __serve_build_asgi_app__(self) -> AsgiApp:
        return self._app

    async def held(
        self, name: str, arguments: dict[str, Any], caller: Caller, holder: str
    ) -> Result | None:
        """A call of a run that `holder` has: None from every other replica."""
        if holder != self._name:
            return None
        return await self._calls.held(name, arguments, caller)

    async def told(self, what: str, asked: dict[str, Any]) -> tuple[int, bytes]:
        """What the console asks about the runs of all callers."""
        return await self._trajectories.told(what, asked)

    async def probe(self) -> dict[str, Any]:
        """Counts for tests and operators: streams that run or wait here."""
        return {"streams": len(self._calls.open_handles())}


class Peers:
    """The other replicas of this deployment: a run that yielded lives on where it began."""

    def __init__(self) -> None:
        context = serve.get_replica_context()
        self.name = context.replica_id.unique_id
        self._where = (context.deployment, context.app_name)
        self._handle: Any = None

    async def at(
        self, record: Record, name: str, arguments: dict[str, Any], caller: Caller
    ) -> Result | None:
        """Have the replica that holds the record's run make a call of it; None where it is gone.

        All are asked: behind HAProxy Serve takes no router of ours for an ingress.
        """
        if self._handle is None:
            self._handle = serve.get_deployment_handle(*self._where)
        asked = self._handle.broadcast("held", name, arguments, caller, record.holder)
        answers: list[Result | None] = await asked.results_async()
        return next((answer for answer in answers if answer is not None), None)


class Telling(Keeper):
    """A keeper that tells the models' ingress of each run that is over, so that all figures are
    found in one place.
    """

    def __init__(self, *parts: Any, told: Knowing, **named: Any) -> None:
        super().__init__(*parts, **named)
        self._told = told
        self._telling: set[asyncio.Task[None]] = set()

    async def update(self, record: Record) -> None:
        await super().update(record)
        if record.status == "ended":
            seen = record.snapshot
            reason, seconds = str(seen.get("reason") or ""), float(seen.get("elapsed_s") or 0.0)
            task = asyncio.ensure_future(self._told.run_ended(reason, record.rows, seconds))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)


class Knowing:
    """Speaks with the ingress of the models; its handle is made when first needed."""

    def __init__(self, application: str) -> None:
        self._application = application
        self._made: Any = None

    @property
    def _handle(self) -> Any:
        if self._made is None:
            self._made = serve.get_deployment_handle("ingress", self._application)
        return self._made

    async def run_ended(self, ending: str, rows: int, seconds: float) -> None:
        """A figure that is lost is no trouble of the run's."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(PATIENCE_S):
                await self._handle.tool_run_ended.remote(ending, rows, seconds)

    async def key(self, key_id: str) -> Key | None:
        """Which key has an id. Raises UnavailableError."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self._handle.key.remote(key_id)
        except Exception as error:  # noqa: BLE001 - whatever keeps them
            message = f"the keys cannot be looked up: {error!r}"
            raise UnavailableError(message) from None
        return msgspec.msgpack.decode(found, type=Key) if found else None


class Asking:
    """Asks an ingress about the turn that made a call: any of them will do. The handle is made when
    first needed, since the models' application may come up after this one.
    """

    def __init__(self, application: str) -> None:
        self._application = application
        self._handle: Any = None

    async def ask(self, question: Question) -> str:
        answer = self._ingress().decide.remote(
            question.call_id, question.principal, question.text, question.schema
        )
        try:
            said: str = await answer
        except asyncio.CancelledError:
            answer.cancel()
            raise
        return said

    async def purse(self, call_id: str, principal: str) -> Purse | None:
        """What the session that made the call has left."""
        found: Purse | None = await self._ingress().purse.remote(call_id, principal)
        return found

    def _ingress(self) -> Any:
        if self._handle is None:
            self._handle = serve.get_deployment_handle("ingress", self._application)
        return self._handle


def declared(settings: ToolSettings) -> list[Tool]:
    """The tools of the settings. Raises DeclarationError, a ValueError that names the field."""
    text = msgspec.json.encode({"tools": settings.tools}).decode()  # JSON is YAML
    return load(text, {"CHECKOUT": str(ROOT)} | os.environ)


def guarded(gateway: AsgiApp, access: AccessSettings, look_up: LookUp) -> AsgiApp:
    """The gateway behind a gate: whoever passes is known by the same name as to the models."""
    return Gate(
        gateway,
        doorkeeper(access, look_up),
        Audit(access.audit_file),
        refuse=refusal,
        scope_of=lambda _: "tools",
        max_header_bytes=access.max_header_bytes,
    )


def refusal(
    _path: str, _headers: Mapping[str, str], error: TreadleError, name: str
) -> tuple[int, dict[str, str], bytes]:
    """As an MCP client reads it: the status decides, the body is for people."""
    status, own, _ = APIS["chat"].error(error, request_id=name)
    return status, own, msgspec.json.encode({"error": error.message})


def principal(headers: Mapping[str, str]) -> str:
    """Whom the gate found: a call's own session is then known to be theirs."""
    return headers.get(PRINCIPAL.decode(), "") or ANONYMOUS


def directory() -> Path:
    """Where this cluster's rows lie, on each node."""
    cluster = ray.get_runtime_context().gcs_address.replace(":", "-")
    return Path(tempfile.gettempdir()) / f"treadle-tools-{cluster}"


def _book(where: str, root: Path) -> Book:
    if where == FOLDER:
        return FolderBook(root)
    import redis.asyncio as redis  # noqa: PLC0415 (only this book needs it)

    return RedisBook(redis.from_url(where))
