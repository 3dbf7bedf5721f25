"""What actors say to each other, as msgpack bytes. Structs only.

A hop between processes carries one item per engine step for all turns that it concerns, never one
per token and never text of any API (docs/decisions/0002-lanes.md).
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from router.decision import Ask, Choice
from turns.errors import ErrorKind
from turns.frames import EventBatch, Frame, ParseSpec


class Opening(Struct, array_like=True, frozen=True):
    """Tells a parser of a turn before its first frame: who reads it and how it is parsed.

    `said` are tokens of it whose events its reader has already: nothing is told of them again.
    """

    turn: str
    ingress: str
    spec: ParseSpec
    input_tokens: int
    said: list[int] = field(default_factory=list)


class Step(Struct, array_like=True):
    """One engine step on its way to a parser: new turns, the frames of all, and turns that left.

    `number` counts the steps of a lane from 0, since they may arrive in another order. Nothing is
    told of a turn that left: nobody reads it here any more.
    """

    opened: list[Opening]
    frames: list[Frame]
    lane: str = ""
    number: int = 0
    left: list[str] = field(default_factory=list)


class LeaseEnd(Struct, array_like=True, frozen=True):
    """How the engine's part of a turn ended. `kind` is set when it failed.

    `lost`: the replica has lost it by no fault of the turn's, which may go on elsewhere.
    """

    kind: ErrorKind | None = None
    message: str = ""
    retry_after: int = 1
    lost: bool = False


class ReplicaCard(Struct, frozen=True):
    """What an engine replica publishes of itself in its Serve replica metadata."""

    replica: str
    model: str
    block_size: int
    max_model_len: int
    max_turns: int
    parsers: list[str]
    reads_conversation: bool = False
    sees_images: bool = False
    kv_blocks: int = 0


class Settlement(Struct, array_like=True, frozen=True, tag=0):
    """What became of a reservation: its turn had its first token, or it is `over`.

    `cached` is what the engine's cache held of the prompt, in tokens; -1 when it is not known.
    """

    model: str
    reservation: str
    over: bool
    cached: int = -1


class Placement(Struct, array_like=True, frozen=True, tag=1):
    """A turn that its ingress has placed by itself; `choice` names the reservation it asks for."""

    model: str
    ask: Ask
    choice: Choice


Told = Settlement | Placement
"""What an ingress tells the router of its turns, in the order in which it happened."""

encode = msgspec.msgpack.Encoder().encode
decode_step = msgspec.msgpack.Decoder(Step).decode
decode_batches = msgspec.msgpack.Decoder(list[EventBatch]).decode
decode_lease_end = msgspec.msgpack.Decoder(LeaseEnd).decode
