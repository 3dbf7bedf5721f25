"""One turn's life, as taps are told it."""

from __future__ import annotations

from observe.seen import (
    CallEnded,
    FirstEvent,
    LaneLost,
    Names,
    RequestRefused,
    RouterState,
    ToolRunEnded,
    TurnEnded,
    TurnFailed,
    TurnReceived,
    TurnRouted,
    TurnStarted,
)
from observe.taps import Tap
from turns.events import Usage

NAMES = Names("turn-1", "req-1", "session-1", "messages", "m")
LOST = Names("turn-2", "req-2", "session-1", "chat", "whatever a client asks for")


def tell_all(tap: Tap) -> None:
    """Everything there is to tell, once."""
    tap.request_refused(RequestRefused("req-0", "responses", 0.5, "invalid_request", "bad JSON"))
    tap.turn_received(TurnReceived(NAMES, 1.0, stream=True, harness="codex"))
    tap.turn_routed(TurnRouted(NAMES, 1.1, "r0", "overlap", 0.002, 64))
    tap.turn_routed(TurnRouted(NAMES, 1.2, "r1", "load", 0.001, 0, attempt=2))
    tap.turn_started(TurnStarted(NAMES, 1.3, 100, 64))
    tap.first_event(FirstEvent(NAMES, 1.4, 0.4))
    tap.events(7)
    tap.call_ended(CallEnded(NAMES, 1.5, "add", lead=0.5))
    tap.call_ended(CallEnded(NAMES, 1.6, "add", "length"))
    tap.turn_ended(TurnEnded(NAMES, 2.0, "length", Usage(100, 64, 20, 5), 1.0, 0.03, 0.2))
    tap.turn_received(TurnReceived(LOST, 2.0, stream=False))
    tap.turn_failed(TurnFailed(LOST, 2.5, "engine", "replica r0 died", 0.5, streamed=True))
    tap.redis_trouble("get", "no answer in 0.25 s", 3.0, away=True)
    tap.redis_recovered(1.5, 4.5)
    tap.tool_run_ended(ToolRunEnded(4.8, "predicate_satisfied", 32, 0.5))
    tap.lane_opened("ingress-1/parser-1", 5.0)
    tap.lane_lost(LaneLost("ingress-1/parser-1", 6.0, "actor died", 3))
    tap.router_state(RouterState(7.0, 2, 1, 0, 1000, 10, 50, 45, 1))
