"""A decision: what is asked of the router and what it may answer."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Why = Literal["overlap", "load", "spread", "round_robin", "sticky", "hashed"]
Refused = Literal["saturated", "no_replica", "waited_too_long"]


class Ask(Struct, frozen=True, array_like=True, kw_only=True):
    """One turn that wants a replica.

    `hashes` are those of the prompt's whole blocks, `prompt_tokens` its true length. `osl` is the
    expected output in tokens. `tier` is strict (higher first), `priority` within a tier is not:
    waiting makes up for it. `owner` is the ingress that asks; when it dies its reservations go.
    `latency` is how much the turn minds slow tokens: 0 not at all (batch), 1 above all. A `pinned`
    prefix is kept warm where it is, and load does not drive its turns away.
    """

    turn: str
    hashes: list[int]
    prompt_tokens: int
    priority: int = 0
    tier: int = 0
    osl: int | None = None
    session: str = ""
    tenant: str = ""
    owner: str = ""
    exclude: tuple[str, ...] = ()
    latency: float | None = None
    pinned: bool = False


class Choice(Struct, frozen=True, array_like=True, tag=0):
    """Go there. Release `reservation` exactly once, whatever becomes of the turn.

    `hashed`: an ingress chose by itself, and named the reservation that it asks for.
    """

    replica: str
    overlap_blocks: int
    why: Why
    reservation: str


class Queued(Struct, frozen=True, array_like=True, tag=1):
    """The fleet is full; the turn waits inside. `Router.admit` will answer for it."""

    turn: str
    ahead: int


class Refusal(Struct, frozen=True, array_like=True, tag=2):
    """Nothing was begun. `retry_after` in whole seconds, from the pace at which turns end."""

    why: Refused
    retry_after: int


Decision = Choice | Queued | Refusal
