"""Endings: the closed list of reasons for which a trajectory ends, and where each can happen.

Only `exhausted` is complete. Every other ending says that there may be more than was seen, and the
first word that the model reads is PARTIAL.
"""

from __future__ import annotations

from enum import StrEnum

from toolruns.contract import MODES, Mode


class Ending(StrEnum):
    EXHAUSTED = "exhausted"
    PREDICATE_SATISFIED = "predicate_satisfied"
    BUDGET_ROWS = "budget_rows"
    BUDGET_BYTES = "budget_bytes"
    BUDGET_TOKENS = "budget_tokens"
    BUDGET_WALL_CLOCK = "budget_wall_clock"
    DEADLINE_INHERITED = "deadline_inherited"
    MODEL_STOPPED = "model_stopped"
    MODEL_REFINED = "model_refined"
    IDLE_TIMEOUT = "idle_timeout"
    CANCELLED = "cancelled"
    CLIENT_DISCONNECTED = "client_disconnected"
    HANDLE_CLOSED = "handle_closed"
    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_TRUNCATED = "upstream_truncated"
    STORE_LIMIT = "store_limit"
    SERVER_DRAINING = "server_draining"
    PREDICATE_INVALID = "predicate_invalid"


EXTERNAL = frozenset(
    {
        Ending.MODEL_STOPPED,
        Ending.MODEL_REFINED,
        Ending.CANCELLED,
        Ending.CLIENT_DISCONNECTED,
        Ending.HANDLE_CLOSED,
        Ending.STORE_LIMIT,
        Ending.SERVER_DRAINING,
    }
)
"""Endings that somebody outside the machine decides and brings in with a `Stop`."""

IMPOSSIBLE: dict[tuple[Mode, Ending], str] = {
    ("unbounded", Ending.EXHAUSTED): (
        "nothing can say that an unbounded source is over: a source that closes itself was cut"
    ),
    ("request_response", Ending.PREDICATE_SATISFIED): (
        "the whole answer comes at once, so the source is exhausted by the chunk that satisfies"
    ),
    ("request_response", Ending.BUDGET_BYTES): (
        "the one answer was received whole before its size was known: nothing is left unread"
    ),
    ("request_response", Ending.IDLE_TIMEOUT): (
        "silence before the one answer is the call itself; the wall clock bounds it"
    ),
}

ADVICE: dict[Ending, str] = {
    Ending.EXHAUSTED: "the source has no more",
    Ending.PREDICATE_SATISFIED: "source has more",
    Ending.BUDGET_ROWS: "row budget spent; raise max_rows or narrow the request",
    Ending.BUDGET_BYTES: "byte budget spent; select fewer columns or narrow the request",
    Ending.BUDGET_TOKENS: "context budget spent; read rows by handle instead of more synopses",
    Ending.BUDGET_WALL_CLOCK: "time budget spent; raise max_seconds or narrow the request",
    Ending.DEADLINE_INHERITED: "the session's time is nearly spent; answer with what is here",
    Ending.MODEL_STOPPED: "stopped on request",
    Ending.MODEL_REFINED: "superseded by a narrower call",
    Ending.IDLE_TIMEOUT: "the source fell silent",
    Ending.CANCELLED: "the call was cancelled",
    Ending.CLIENT_DISCONNECTED: "the client left",
    Ending.HANDLE_CLOSED: "the handle was closed before the source ended",
    Ending.UPSTREAM_ERROR: "the source failed",
    Ending.UPSTREAM_TRUNCATED: "the source itself cut its answer",
    Ending.STORE_LIMIT: "the row store is full for this call; close other handles",
    Ending.PREDICATE_INVALID: "consume_until does not fit the columns; correct it and call again",
    Ending.SERVER_DRAINING: "this server is going away; call again",
}
"""What the model is told beside each ending."""


def is_complete(ending: Ending | None) -> bool:
    """Whether everything that the source had was seen."""
    return ending is Ending.EXHAUSTED


def reachable() -> tuple[tuple[Mode, Ending], ...]:
    """Every (mode, ending) that can happen, in the order of the two lists."""
    return tuple((m, e) for m in MODES for e in Ending if (m, e) not in IMPOSSIBLE)
