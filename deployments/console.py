"""The console's parts, put together: what writes an ingress's records, and what shows them."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from fastapi import APIRouter

from actors.board import Board, BoardSettings
from actors.console import Console
from actors.console_page import console_page
from actors.console_pages import ToolRuns, console_data, console_runs, no_tool_runs
from actors.ingress import Ingress
from actors.news import FleetOf
from actors.prefixes import Prefixes
from deployments.model import ROOT
from deployments.settings import ConsoleSettings
from observe.recorder import Recorder
from observe.taps import Tap
from sessions.store import Store

log = logging.getLogger(__name__)

FOLDER = ROOT / "console"
AGAIN = 10.0
"""Seconds after which an application that was not there is looked for again."""


class Watched:
    """What an ingress must have before it is built, so that it can be looked at: a tap."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        self.recorder = Recorder()
        self.taps: tuple[Tap, ...] = (self.recorder,) if settings.enabled else ()

    def board(self, store: Store, ingress: str, prefixes: Prefixes) -> Board:
        return Board(
            store,
            ingress,
            recorder=self.recorder,
            prefixes=prefixes,
            settings=kept(self._settings),
        )


def kept(settings: ConsoleSettings) -> BoardSettings:
    return BoardSettings(
        ttl=settings.keep_s,
        sessions=settings.sessions,
        turns=settings.turns,
        redact=settings.redact,
    )


def routers(
    settings: ConsoleSettings,
    ingress: Ingress,
    store: Store,
    fleet: FleetOf,
    tools: ToolRuns,
) -> list[APIRouter]:
    """The console's pages; none where it is off."""
    if not settings.enabled:
        return []
    console = Console(store, kept(settings))
    anyone = settings.access == "anyone"
    return [
        console_data(ingress, console, fleet, anyone=anyone),
        console_runs(tools, redact=settings.redact, anyone=anyone),
        console_page(FOLDER),
    ]


class GatewayRuns:
    """Asks the streaming tools' own application, which may not be there, or come later."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._application = settings.tools
        self._handle: Any = None
        self._looked = 0.0

    async def __call__(self, what: str, asked: dict[str, Any]) -> tuple[int, bytes]:
        if self._handle is None and time.monotonic() - self._looked > AGAIN:
            self._looked = time.monotonic()
            self._handle = await asyncio.to_thread(_handle, self._application)
        if self._handle is None:
            return await no_tool_runs(what, asked)
        answer: tuple[int, bytes] = await self._handle.told.remote(what, asked)
        return answer


def _handle(application: str) -> Any:
    from ray import serve  # noqa: PLC0415 - tests put the parts together without Ray

    try:
        return serve.get_deployment_handle("tools", application)
    except Exception as error:  # noqa: BLE001 - there is no such application (yet)
        log.debug("no streaming tools at %r: %r", application, error)
        return None
