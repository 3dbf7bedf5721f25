"""The edge of an ingress: its ASGI application, made of the settings and nothing of Ray's."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
from collections.abc import Sequence

from fastapi import APIRouter

from actors.admin_pages import admin_pages
from actors.attachments.fetch import Fetcher
from actors.attachments.pdf import PdfLimits, PdfReader
from actors.attachments.resolve import Attachments
from actors.background import Background
from actors.conductor import Perseverance
from actors.conversation_pages import conversation_pages
from actors.cross_origin import CrossOrigin
from actors.decisions import Decisions
from actors.edge import SECURITY, AsgiApp, Edge
from actors.gate import Gate
from actors.gossip import Gossip
from actors.idling import Idling
from actors.ingress import Ingress
from actors.intake import Intake
from actors.keeper import Keeper
from actors.keyring import Keyring
from actors.model_names import ModelNames
from actors.model_pages import model_pages
from actors.model_service import ModelService
from actors.open_calls import OpenCalls
from actors.pages import pages
from actors.prefix_pages import prefix_pages
from actors.purses import Purses
from actors.reception import Limits
from actors.replay import Replay
from actors.response_pages import response_pages
from actors.response_store import ResponseStore
from actors.server_tools.allowed import AllowedServer
from actors.server_tools.serving import ServerToolLimits, ServerTools
from actors.sockets import Sockets
from actors.token_pages import token_pages
from actors.trace_pages import trace_pages
from actors.turn_notes import TurnNotes
from deployments import profiles
from deployments.access import doorkeeper
from deployments.seals import given
from deployments.settings import AppSettings, AttachmentSettings
from observe.audit import Audit
from observe.turn_traces import TraceFiles
from prompts.seals import Sealer
from protocols.catalog import Alias
from sessions.ledger import Ledger
from sessions.past_turns import PastTurns
from sessions.store import Store

ALONE = "ingress"
FIGURES = "figures"
FIGURES_BEATS = 5
"""Beats between two times that an ingress tells its figures: less than between two scrapes."""


class Outside:
    """An ingress's outside: `app` is what an HTTP server runs, `background` what outlives it,
    `decisions` and `purses` what streaming tools may ask about its `calls` and those of the other
    ingresses, `gossip` what it tells the other
    ingresses under its `name`.
    """

    def __init__(
        self,
        settings: AppSettings,
        ingress: Ingress,
        store: Store,
        more: Sequence[APIRouter] = (),
        *,
        name: str = "",
    ) -> None:
        """`more` are pages beside those of the APIs."""
        self.calls = calls = OpenCalls(settings.ingress.open_calls, store)
        responses = ResponseStore(store, ttl=settings.store.response_ttl_s)
        attached = attachments(settings.ingress.attachments)
        noted = calls if calls.most else None
        tools = server_tools(settings, ingress, noted)
        self.traces = TraceFiles(settings.observe.turns_folder)
        notes = TurnNotes(ingress.keeper, self.traces, ttl=settings.store.past_ttl_s)
        intake = Intake(ingress, responses, noted, attached, tools, notes=notes)
        self._ingress, self._name = ingress, name
        self.gossip = Gossip(store, name or ALONE)
        self.gossip.tell(FIGURES, self._snapshot, every=FIGURES_BEATS)
        self.allowances = intake.allowances
        self.allowances.share(self.gossip)
        self.keyring = keyring = Keyring(store)
        audit = Audit(settings.access.audit_file)
        self.doors = doorkeeper(settings.access, keyring.find)
        self.decisions = Decisions(ingress, calls)
        self.purses = Purses(ingress, calls)
        self.background = Background(intake)
        routers = [
            model_pages(ingress),
            token_pages(intake),
            prefix_pages(ingress),
            trace_pages(store),
            response_pages(intake, self.background),
            conversation_pages(intake),
            admin_pages(keyring, self.doors, audit),
            *more,
        ]
        origins = CrossOrigin(settings.ingress.cors_origins)
        edge = Edge(
            intake,
            background=self.background,
            pages=pages(ingress, routers, figures=self.figures),
            sockets=Sockets(intake),
            origins=origins,
        )
        self.app: AsgiApp = Gate(
            edge,
            self.doors,
            audit,
            said=lambda asked: SECURITY | origins.headers(asked),
            max_header_bytes=settings.access.max_header_bytes,
            tell=ingress.figures.turned_away,
        )

    def _snapshot(self) -> bytes:
        return self._ingress.figures.snapshot()

    async def figures(self) -> bytes:
        """What Prometheus scrapes: the figures of all ingresses, whichever of them is asked.

        Beside the event loop: 4 ms of CPU for each of them.
        """
        render = self._ingress.figures.render
        return await asyncio.to_thread(render, self._name, self.gossip.heard(FIGURES))


def server_tools(
    settings: AppSettings, ingress: Ingress, calls: OpenCalls | None
) -> ServerTools | None:
    """What runs tools for clients, where any server of them is allowed."""
    chosen = settings.tool_servers
    if not chosen.allow:
        return None
    allowed = [
        AllowedServer(one.url, os.path.expandvars(one.connect), one.own) for one in chosen.allow
    ]
    with contextlib.suppress(ImportError):  # now: it takes half a second, in which no turn goes on
        importlib.import_module("actors.server_tools.upstream")
    bounds = ServerToolLimits(chosen.steps, chosen.call_s, chosen.list_s)
    return ServerTools(ingress, allowed, bounds, calls)


def replay(settings: AppSettings, store: Store, keeper: Keeper, made: str) -> Replay:
    """What brings replies back as they were generated; `made` is the cluster's own secret."""
    sealer = Sealer(given(settings.seals) or (made,), ttl=settings.seals.ttl_s)
    ttl = settings.store.ledger_ttl_s
    return Replay(Ledger(store, ttl=ttl), keeper, sealer, idling=Idling(store, ttl=ttl))


def attachments(settings: AttachmentSettings) -> Attachments:
    """What reads the files of requests, and follows their URLs where that is allowed."""
    most, seconds = settings.most_bytes, settings.seconds
    pdf = PdfReader(PdfLimits(size=most, pages=settings.pages, seconds=seconds))
    return Attachments(pdf, Fetcher(most=most, seconds=seconds) if settings.fetch_urls else None)


def past_turns(settings: AppSettings, store: Store) -> PastTurns | None:
    """Where the prefix doctor finds turns of other ingresses."""
    ttl = settings.store.past_ttl_s
    return PastTurns(store, ttl=ttl) if ttl else None


def limits(settings: AppSettings) -> Limits:
    """What a request body may be."""
    return Limits(settings.ingress.max_body_bytes, settings.ingress.max_body_ratio)


def perseverance(settings: AppSettings) -> Perseverance:
    """How far a turn is carried."""
    chosen = settings.failover
    return Perseverance(
        moves=chosen.moves,
        patience=chosen.patience_s,
        alone=chosen.alone_s,
        parked=chosen.parked_s,
        quiet=chosen.quiet_s,
    )


def names(settings: AppSettings, models: list[ModelService]) -> ModelNames:
    """The names under which the models are served."""
    aliases = [Alias(alias.name, alias.model, alias.profile) for alias in settings.aliases]
    known = {alias.profile: profiles.load(alias.profile) for alias in aliases if alias.profile}
    return ModelNames(models, aliases, known)
