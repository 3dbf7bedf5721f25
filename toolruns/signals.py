"""Signals go into a run, actions come out. Neither acts by itself.

The order of actions: `Open` once, then `Pull`, `Keep`, `Show`, `Decide`, `Note` as they come, at
most one `Yield` a leg, then `Close` and `Return` once. A `Pull` is answered by exactly one of
`Chunk`, `Exhausted`, `Truncated` or `Failed`; no second one is asked for before that.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from toolruns.budget import Budget
from toolruns.endings import Ending
from toolruns.predicate.syntax import Predicate

EventType = Literal[
    "trajectory.opened",
    "chunk.received",
    "synopsis.emitted",
    "predicate.satisfied",
    "budget.warned",
    "decision.requested",
    "decision.made",
    "trajectory.yielded",
    "trajectory.resumed",
    "trajectory.terminated",
    "result.returned",
    "drilldown.called",
    "handle.expired",
    "error.raised",
]


class Chunk(Struct, frozen=True):
    """Rows from upstream, as one Arrow record batch.

    `size` is in bytes as the source counts them, `pages` how many upstream pages it took. `last`
    says that the source is exhausted with it. `cursor` is where to go on, opaque, "" when unknown.
    """

    batch: Any
    size: int
    last: bool = False
    pages: int = 1
    cursor: str = ""


class Exhausted(Struct, frozen=True):
    """The source has no more rows."""


class Truncated(Struct, frozen=True):
    """The source says that it cut its own answer; `note` is its reason."""

    note: str = ""


class Failed(Struct, frozen=True):
    """The source failed; `message` is safe to show to the model."""

    message: str


class Tick(Struct, frozen=True):
    """Time passed: sent at `ToolRun.wake_at` or later."""


class Stop(Struct, frozen=True):
    """Somebody outside ends the run; `ending` is one of `endings.EXTERNAL`."""

    ending: Ending
    note: str = ""


class Continue(Struct, frozen=True):
    """A yielded run goes on under a budget of its own, and a new predicate if one is given.

    A new predicate speaks of the whole stream: `past` are the batches that came before it.
    """

    budget: Budget
    until: Predicate | None = None
    past: tuple[Any, ...] = ()
    checkpoint: bool = False


class Decided(Struct, frozen=True):
    """What a decision round answered. `latency` is in seconds, as the asker measured it."""

    verdict: Literal["continue", "stop", "refine", "failed"]
    until: Predicate | None = None
    latency: float = 0.0
    past: tuple[Any, ...] = ()


Signal = Chunk | Exhausted | Truncated | Failed | Tick | Stop | Continue | Decided


class Open(Struct, frozen=True):
    """Open the upstream."""


class Pull(Struct, frozen=True):
    """Ask the source for about `rows` more rows (one page, for a paginated source)."""

    rows: int


class Keep(Struct, frozen=True):
    """Store these rows under the run's handle."""

    batch: Any
    seq: int


class Show(Struct, frozen=True):
    """A running synopsis for whoever watches: `snapshot` is its JSON form."""

    snapshot: dict[str, Any]


class Decide(Struct, frozen=True):
    """Ask the model that made the call whether to go on. The stream does not wait for it."""

    snapshot: dict[str, Any]


class Note(Struct, frozen=True):
    """An event for the trajectory's record."""

    type: EventType
    data: dict[str, Any] = field(default_factory=dict)


class Yield(Struct, frozen=True):
    """Hand the snapshot to the caller now; the upstream waits, paused, for `Continue`."""

    snapshot: dict[str, Any]


class Close(Struct, frozen=True):
    """Close the upstream now."""


class Return(Struct, frozen=True):
    """The run is over: hand the snapshot to the caller."""

    snapshot: dict[str, Any]
    ending: Ending


Action = Open | Pull | Keep | Show | Decide | Note | Yield | Close | Return
