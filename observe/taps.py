"""Taps: what the house tells, in which order, and the fan-out to all who listen.

For one turn: `turn_received`, `turn_routed` for each attempt, `turn_started`, `first_event`, and
exactly one of `turn_ended` and `turn_failed`; a turn that is refused is received and fails. A
request that never became a turn is `request_refused`.
`events` comes once per batch that a lane brings, for all its turns together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from observe.seen import (
    CallEnded,
    FirstEvent,
    LaneLost,
    RequestRefused,
    RouterState,
    ToolRunEnded,
    TurnEnded,
    TurnFailed,
    TurnReceived,
    TurnRouted,
    TurnStarted,
)

_log = logging.getLogger("treadle.observe")


class Tap(Protocol):
    """A listener. Calls are quick and do not block; what they raise is not felt by a turn."""

    def request_refused(self, seen: RequestRefused) -> None: ...

    def turn_received(self, seen: TurnReceived) -> None: ...

    def turn_routed(self, seen: TurnRouted) -> None: ...

    def turn_started(self, seen: TurnStarted) -> None: ...

    def first_event(self, seen: FirstEvent) -> None: ...

    def events(self, count: int) -> None: ...

    def call_ended(self, seen: CallEnded) -> None: ...

    def turn_ended(self, seen: TurnEnded) -> None: ...

    def turn_failed(self, seen: TurnFailed) -> None: ...

    def redis_trouble(self, operation: str, error: str, at: float, *, away: bool) -> None:
        """A call to the store failed; `away`: from now on it is not asked, until it recovers."""
        ...

    def redis_recovered(self, seconds: float, at: float) -> None: ...

    def tool_run_ended(self, seen: ToolRunEnded) -> None: ...

    def lane_opened(self, lane: str, at: float) -> None: ...

    def lane_lost(self, seen: LaneLost) -> None: ...

    def router_state(self, seen: RouterState) -> None: ...


class Quiet:
    """A tap that does nothing: what a listener of a few things is made from."""

    def request_refused(self, seen: RequestRefused) -> None:
        pass

    def turn_received(self, seen: TurnReceived) -> None:
        pass

    def turn_routed(self, seen: TurnRouted) -> None:
        pass

    def turn_started(self, seen: TurnStarted) -> None:
        pass

    def first_event(self, seen: FirstEvent) -> None:
        pass

    def events(self, count: int) -> None:
        pass

    def call_ended(self, seen: CallEnded) -> None:
        pass

    def turn_ended(self, seen: TurnEnded) -> None:
        pass

    def turn_failed(self, seen: TurnFailed) -> None:
        pass

    def redis_trouble(self, operation: str, error: str, at: float, *, away: bool) -> None:
        pass

    def redis_recovered(self, seconds: float, at: float) -> None:
        pass

    def tool_run_ended(self, seen: ToolRunEnded) -> None:
        pass

    def lane_opened(self, lane: str, at: float) -> None:
        pass

    def lane_lost(self, seen: LaneLost) -> None:
        pass

    def router_state(self, seen: RouterState) -> None:
        pass


class Taps:
    """Tells all taps, in their order. A tap that raises is counted in `failures`, logged the first
    time, and keeps nobody else from hearing.
    """

    def __init__(self, *taps: Tap) -> None:
        self.failures = 0
        self._logged: set[tuple[str, str]] = set()
        self._taps = taps

    def request_refused(self, seen: RequestRefused) -> None:
        for tap in self._taps:
            self._tell(tap.request_refused, seen)

    def turn_received(self, seen: TurnReceived) -> None:
        for tap in self._taps:
            self._tell(tap.turn_received, seen)

    def turn_routed(self, seen: TurnRouted) -> None:
        for tap in self._taps:
            self._tell(tap.turn_routed, seen)

    def turn_started(self, seen: TurnStarted) -> None:
        for tap in self._taps:
            self._tell(tap.turn_started, seen)

    def first_event(self, seen: FirstEvent) -> None:
        for tap in self._taps:
            self._tell(tap.first_event, seen)

    def events(self, count: int) -> None:
        for tap in self._taps:
            self._tell(tap.events, count)

    def call_ended(self, seen: CallEnded) -> None:
        for tap in self._taps:
            self._tell(tap.call_ended, seen)

    def turn_ended(self, seen: TurnEnded) -> None:
        for tap in self._taps:
            self._tell(tap.turn_ended, seen)

    def turn_failed(self, seen: TurnFailed) -> None:
        for tap in self._taps:
            self._tell(tap.turn_failed, seen)

    def redis_trouble(self, operation: str, error: str, at: float, *, away: bool) -> None:
        for tap in self._taps:
            self._tell(tap.redis_trouble, operation, error, at, away=away)

    def redis_recovered(self, seconds: float, at: float) -> None:
        for tap in self._taps:
            self._tell(tap.redis_recovered, seconds, at)

    def tool_run_ended(self, seen: ToolRunEnded) -> None:
        for tap in self._taps:
            self._tell(tap.tool_run_ended, seen)

    def lane_opened(self, lane: str, at: float) -> None:
        for tap in self._taps:
            self._tell(tap.lane_opened, lane, at)

    def lane_lost(self, seen: LaneLost) -> None:
        for tap in self._taps:
            self._tell(tap.lane_lost, seen)

    def router_state(self, seen: RouterState) -> None:
        for tap in self._taps:
            self._tell(tap.router_state, seen)

    def _tell(self, hear: Callable[..., None], *told: Any, **how: Any) -> None:
        try:
            hear(*told, **how)
        except Exception:  # noqa: BLE001 a turn must not feel who listens to it
            self.failures += 1
            once = (hear.__qualname__, hear.__name__)
            if once not in self._logged:
                self._logged.add(once)
                _log.exception("a tap failed at %s; further failures are only counted", once[1])
