"""The tools deployment: a Gateway with its sources, its rows and its owners put in."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray import serve

from actors.edge import AsgiApp
from actors.reception import owner
from deployments.model import ROOT
from deployments.tool_settings import ToolSettings
from observe.tracing import tracer
from toolruns.budget import Purse
from toolruns.decisions import Question
from toolruns.gateway.app import Gateway
from toolruns.gateway.caller import Caller
from toolruns.gateway.calls import Calls, Result, Settings
from toolruns.gateway.declared import load
from toolruns.gateway.spans import Spans
from toolruns.rows.books import FolderBook, RedisBook
from toolruns.rows.handles import Book, Record
from toolruns.rows.keeper import Keeper
from toolruns.rows.sandbox import Sandbox
from toolruns.rows.store import RowStore
from toolruns.tool import Tool

ANONYMOUS = "anonymous"
FOLDER = "folder"


class ToolGateway:
    """What Serve calls: the gateway is its HTTP side, run by the lifespan that Serve runs."""

    def __init__(self, settings: dict[str, Any]) -> None:
        chosen = ToolSettings.model_validate(settings)
        root = Path(chosen.folder) if chosen.folder else directory()
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        node = ray.get_runtime_context().get_node_id()
        asking, peers = Asking(chosen.models), Peers()
        self._calls = Calls(
            declared(chosen),
            Keeper(_book(chosen.book, root), RowStore(root), node=node, holder=peers.name),
            Sandbox(root, at_once=chosen.drilldowns_at_once),
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
        self._app = Gateway(
            self._calls,
            authenticate=principal,
            allowed_hosts=list(chosen.allowed_hosts) or None,
            always_load=chosen.always_load,
        )

    def __serve_build_asgi_app__(self) -> AsgiApp:
        return self._app

    async def held(
        self, name: str, arguments: dict[str, Any], caller: Caller, replica: str = ""
    ) -> Result:
        """A call of a run that this replica holds; the router reads `replica`."""
        return await self._calls.held(name, arguments, caller)

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
    ) -> Result:
        """Have the replica that holds the record's run make a call of it."""
        if self._handle is None:
            self._handle = serve.get_deployment_handle(*self._where)
        answer = self._handle.held.remote(name, arguments, caller, replica=record.holder)
        try:
            result: Result = await answer
        except asyncio.CancelledError:
            answer.cancel()
            raise
        return result


class Asking:
    """Asks the ingress that served a call's turn; its handle is made when first needed, since the
    models' application may come up after this one.
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


def principal(headers: Mapping[str, str]) -> str:
    """Whoever shows the same key to the models: a call's own session is then known to be theirs."""
    return owner(headers) or ANONYMOUS


def directory() -> Path:
    """Where this cluster's rows lie, on each node."""
    cluster = ray.get_runtime_context().gcs_address.replace(":", "-")
    return Path(tempfile.gettempdir()) / f"treadle-tools-{cluster}"


def _book(where: str, root: Path) -> Book:
    if where == FOLDER:
        return FolderBook(root)
    import redis.asyncio as redis  # noqa: PLC0415 (only this book needs it)

    return RedisBook(redis.from_url(where))
