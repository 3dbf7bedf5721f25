"""What taps are told: small frozen structs. `at` is seconds since the epoch, durations are seconds.

Nothing here holds what a person or a model wrote.
"""

from __future__ import annotations

from msgspec import Struct

from turns.errors import ErrorKind
from turns.events import Cut, Stop, Usage
from turns.turn import Api


class Names(Struct, frozen=True):
    """Who a turn is: its own id, that of its HTTP request, its session, and what serves it."""

    turn: str
    request: str
    session: str
    api: Api
    model: str


class RequestRefused(Struct, frozen=True):
    """A request never became a turn: it could not be read, or asked for what is not there.

    `message` is for operators.
    """

    request: str
    api: Api
    at: float
    kind: ErrorKind
    message: str


class TurnReceived(Struct, frozen=True):
    """A request was decoded; `ignored` names what of it nobody acts on, `owner` is a digest."""

    names: Names
    at: float
    stream: bool
    harness: str = ""
    ignored: tuple[str, ...] = ()
    owner: str = ""


class TurnRouted(Struct, frozen=True):
    """A replica was chosen in `seconds`, by the router or, while it is away, by hashing.

    `attempt` counts from 1: a turn that moves to another replica is routed again.
    """

    names: Names
    at: float
    replica: str
    why: str
    seconds: float
    overlap_tokens: int = 0
    attempt: int = 1


class TurnStarted(Struct, frozen=True):
    """The engine took the turn: tokens of its prompt and how many of them the cache held."""

    names: Names
    at: float
    input_tokens: int
    cached_tokens: int


class FirstEvent(Struct, frozen=True):
    """The first event of the turn left for the client, `seconds` after the request came."""

    names: Names
    at: float
    seconds: float


class CallEnded(Struct, frozen=True):
    """A tool call of the turn is complete, or was cut. A complete one could be dispatched `lead`
    seconds before the turn was over; -1 where that is not known.
    """

    names: Names
    at: float
    tool: str
    cut: Cut | None = None
    lead: float = -1.0


class TurnEnded(Struct, frozen=True):
    """The turn is over, `seconds` after it was received.

    `gap` is the mean and `longest_gap` the longest time between batches of its events; -1 where
    there were fewer than two.
    """

    names: Names
    at: float
    stop: Stop
    usage: Usage
    seconds: float
    gap: float = -1.0
    longest_gap: float = -1.0


class TurnFailed(Struct, frozen=True):
    """The turn died or was refused; `streamed` says whether its client had seen events of it,
    `usage` what it cost by then.

    `message` is for operators.
    """

    names: Names
    at: float
    kind: ErrorKind
    message: str
    seconds: float
    streamed: bool = False
    usage: Usage = Usage()


class ToolRunEnded(Struct, frozen=True):
    """A streaming tool's run is over, `seconds` after it began, with so many rows. `ending` is one
    of `toolruns.endings.Ending`.
    """

    at: float
    ending: str
    rows: int
    seconds: float


class LaneLost(Struct, frozen=True):
    """A lane ended; the turns on it fail or move."""

    lane: str
    at: float
    reason: str
    turns: int


class RouterState(Struct, frozen=True):
    """The router as it is now. Counts from `promised` on grow as long as the router lives.

    `promised` blocks of overlap against those that engines `kept`; `astray` per cent of recent
    blocks were promised in vain or found unpromised, and `alarm` is 1 where that is too many: the
    prefix index does not see what the engines do. `lost` replicas owe a snapshot of their cache.
    """

    at: float
    replicas: int
    turns: int
    queued: int
    blocks: int
    predicted: int
    promised: int = 0
    kept: int = 0
    gaps: int = 0
    lost: int = 0
    astray: int = 0
    alarm: int = 0
