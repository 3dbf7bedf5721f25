"""Server tools as an ingress has them: turns are equipped with tools, and flown as chains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from actors.exchange import Exchange
from actors.flights import Flight
from actors.open_calls import OpenCalls
from actors.reception import Asked
from actors.server_tools.allowed import AllowedServer, AllowList
from actors.server_tools.calls import Running
from actors.server_tools.chain import Begin, Chain, Parts
from actors.server_tools.listings import Listings
from observe.trace_context import named
from protocols import tool_servers
from turns.reply import Reply
from turns.turn import Turn

if TYPE_CHECKING:
    from actors.ingress import Ingress


class ServerToolLimits(Struct, frozen=True):
    """Model steps in which tools may be called; seconds that a call, and a listing, may take."""

    steps: int = 10
    call_s: float = 120.0
    list_s: float = 10.0


class ServerTools:
    """One per ingress."""

    def __init__(
        self,
        ingress: Ingress,
        allowed: Iterable[AllowedServer],
        limits: ServerToolLimits | None = None,
        calls: OpenCalls | None = None,
    ) -> None:
        self._ingress = ingress
        self._limits = limits or ServerToolLimits()
        self._allowed = AllowList(allowed)
        self._listings = Listings(self._allowed, within=self._limits.list_s)
        self._calls = calls

    async def equipped(self, turn: Turn, headers: Mapping[str, str]) -> Turn:
        """The turn with the tools of its servers. Raises InvalidRequestError."""
        return await self._listings.equipped(turn, headers) if turn.servers else turn

    def begin(
        self, turn: Turn, exchange: Exchange, begin: Begin, *, asked: Asked, size: int
    ) -> Flight:
        """Fly the turn as a chain of steps, each put into the air by `begin`."""
        owner = asked.owner
        targets = {one.label: self._allowed.target(one, asked.keyed) for one in turn.servers}

        def noted(step: Turn, reply: Reply, step_size: int) -> None:
            if self._calls is not None:
                self._calls.note(owner, step, reply, step_size)

        running = Running(
            targets,
            within=self._limits.call_s,
            most=turn.echo.get("max_tool_calls"),
            deadline=turn.hints.deadline_s,
            watched=bool(turn.echo.get("synopses")),
            trace=named(asked.headers),
        )
        ingress = self._ingress
        parts = Parts(
            begin,
            ingress.leave,
            ingress.conductor.within,
            ingress.defect,
            noted,
            self._limits.steps,
        )
        chain = Chain(turn, size, exchange, parts, running)
        running.told = chain.told
        chain.flight = ingress.conductor.carry(turn.id, exchange, chain.run())
        return chain.flight


def ours(turn: Turn) -> bool:
    """Whether we run tools in this turn."""
    return bool(tool_servers.served(turn))
