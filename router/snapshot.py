"""The snapshot: what a restarted router needs to go on, as msgpack bytes.

Deadlines travel as seconds left, since the next life has another clock. Predictions and the queue
stay behind: the first are short-lived guesses, the callers of the second are gone.
"""

from __future__ import annotations

from msgspec import DecodeError, Struct, msgpack

from router.load import Info, Report, Reservation

VERSION = 2


class Member(Struct, array_like=True, frozen=True):
    """One replica: `holdings` maps the engine's block hashes to ours, `heard` is -1 for none."""

    name: str
    info: Info
    report: Report
    foreign_turns: int
    foreign_prefill: int
    last_chosen: int
    heard: int
    lost: bool
    holdings: dict[int, int]


class State(Struct, array_like=True, frozen=True):
    version: int
    serial: int
    mean: float | None
    members: list[Member]
    reservations: list[Reservation]


_decoder = msgpack.Decoder(State)
_encoder = msgpack.Encoder()


def encode(state: State) -> bytes:
    return _encoder.encode(state)


def decode(data: bytes) -> State:
    """ValueError when the bytes are not a snapshot of this version: start empty instead."""
    try:
        state = _decoder.decode(data)
    except DecodeError as error:
        raise ValueError(f"not a router snapshot: {error}; start empty instead") from error
    if state.version != VERSION:
        raise ValueError(f"router snapshot of version {state.version}, not {VERSION}: start empty")
    return state
