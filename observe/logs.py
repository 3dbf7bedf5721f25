"""Logs: a tap that writes one JSON line per thing told, with request, session and turn ids.

`at` is the line's time. A turn that fails by our fault is an error, by the client's a warning; the
steps of a turn on its way are `debug`. Nothing that a person or a model wrote is logged.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Literal, TextIO

import msgspec
import structlog

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
from turns.errors import ErrorKind

Level = Literal["debug", "info", "warning", "error"]

_OURS: frozenset[ErrorKind] = frozenset({"engine", "internal"})


def _fields(seen: msgspec.Struct) -> dict[str, Any]:
    fields = msgspec.structs.asdict(seen)
    names = fields.pop("names", None)
    if isinstance(names, Names):
        fields = msgspec.structs.asdict(names) | fields
    if "usage" in fields:
        fields["usage"] = msgspec.structs.asdict(fields["usage"])
    return fields


def as_json(fields: dict[str, Any], **_: Any) -> str:
    return json.dumps(fields, default=str)  # ASCII: a lone surrogate in a message must not fail


class Logs:
    """Writes to `stream` (standard output if None) what is at `level` or above."""

    def __init__(self, *, level: Level = "info", stream: TextIO | None = None) -> None:
        # Wrapped here and not configured for all: other users of structlog keep their own.
        self._log = structlog.wrap_logger(
            structlog.PrintLogger(stream),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.JSONRenderer(serializer=as_json),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(
                logging.getLevelNamesMapping()[level.upper()]
            ),
            cache_logger_on_first_use=True,
        )

    def request_refused(self, seen: RequestRefused) -> None:
        self._failure("request_refused", seen.kind, seen)

    def turn_received(self, seen: TurnReceived) -> None:
        self._log.debug("turn_received", **_fields(seen))

    def turn_routed(self, seen: TurnRouted) -> None:
        say = self._log.debug if seen.attempt == 1 else self._log.warning
        say("turn_routed", **_fields(seen))

    def turn_started(self, seen: TurnStarted) -> None:
        self._log.debug("turn_started", **_fields(seen))

    def first_event(self, seen: FirstEvent) -> None:
        self._log.debug("first_event", **_fields(seen))

    def events(self, count: int) -> None:
        pass

    def call_ended(self, seen: CallEnded) -> None:
        self._log.debug("call_ended", **_fields(seen))

    def turn_ended(self, seen: TurnEnded) -> None:
        self._log.info("turn_ended", **_fields(seen))

    def turn_failed(self, seen: TurnFailed) -> None:
        self._failure("turn_failed", seen.kind, seen)

    def redis_trouble(self, operation: str, error: str, at: float, *, away: bool) -> None:
        self._log.warning("redis_trouble", operation=operation, error=error, at=at, away=away)

    def redis_recovered(self, seconds: float, at: float) -> None:
        self._log.warning("redis_recovered", seconds=seconds, at=at)

    def tool_run_ended(self, seen: ToolRunEnded) -> None:
        self._log.info("tool_run_ended", **_fields(seen))

    def lane_opened(self, lane: str, at: float) -> None:
        self._log.info("lane_opened", lane=lane, at=at)

    def lane_lost(self, seen: LaneLost) -> None:
        self._log.warning("lane_lost", **_fields(seen))

    def router_state(self, seen: RouterState) -> None:
        self._log.debug("router_state", **_fields(seen))

    def _failure(self, event: str, kind: ErrorKind, seen: msgspec.Struct) -> None:
        say = self._log.error if kind in _OURS else self._log.warning
        say(event, **_fields(seen))
