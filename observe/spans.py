"""Spans of turns: one for each, made when it is over, by the GenAI conventions of OpenTelemetry.

The harness's own trace goes on where its request says it (`observe.trace_context`).
Nothing that a person or a model wrote becomes an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from observe.seen import (
    CallEnded,
    FirstEvent,
    Names,
    TurnEnded,
    TurnFailed,
    TurnReceived,
    TurnRouted,
    TurnStarted,
)
from observe.taps import Quiet
from observe.trace_context import carried
from turns.events import Usage

NANOSECONDS = 10**9
MOST = 20_000
"""Turns whose spans are open at most; of more, the oldest are given up."""


class _Open(Struct):
    """A turn in the air."""

    at: float
    parent: Mapping[str, str]
    attributes: dict[str, Any]
    events: list[tuple[str, float, dict[str, Any]]] = field(default_factory=list)


class TurnSpans(Quiet):
    """A tap that exports through a tracer of anybody's."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: dict[str, _Open] = {}

    def turn_received(self, seen: TurnReceived) -> None:
        names = seen.names
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "treadle",
            "gen_ai.request.model": names.model,
            "gen_ai.request.stream": seen.stream,
            "gen_ai.response.id": names.turn,
            "gen_ai.conversation.id": names.session,
            "treadle.api": names.api,
            "treadle.request.id": names.request,
            "user_agent.original": seen.harness,
        }
        self._open[names.turn] = _Open(seen.at, carried(), attributes)
        while len(self._open) > MOST:
            self._open.pop(next(iter(self._open)))

    def turn_routed(self, seen: TurnRouted) -> None:
        said = {
            "treadle.replica": seen.replica,
            "treadle.why": seen.why,
            "treadle.attempt": seen.attempt,
            "treadle.overlap_tokens": seen.overlap_tokens,
        }
        self._event(seen.names, "treadle.routed", seen.at, said)

    def turn_started(self, seen: TurnStarted) -> None:
        said = {
            "gen_ai.usage.input_tokens": seen.input_tokens,
            "gen_ai.usage.cache_read.input_tokens": seen.cached_tokens,
        }
        self._event(seen.names, "treadle.started", seen.at, said)

    def first_event(self, seen: FirstEvent) -> None:
        self._event(seen.names, "gen_ai.first_token", seen.at, {"treadle.ttft_s": seen.seconds})

    def call_ended(self, seen: CallEnded) -> None:
        said: dict[str, Any] = {"gen_ai.tool.name": seen.tool}
        if seen.cut is not None:
            said["treadle.cut"] = seen.cut
        at = seen.at - max(0.0, seen.lead)
        self._event(seen.names, "treadle.call_cut" if seen.cut else "treadle.call_ready", at, said)

    def turn_ended(self, seen: TurnEnded) -> None:
        said = {"gen_ai.response.finish_reasons": [seen.stop], **_used(seen.usage)}
        self._close(seen.names, seen.at, said)

    def turn_failed(self, seen: TurnFailed) -> None:
        said = {"error.type": seen.kind, **_used(seen.usage)}
        self._close(seen.names, seen.at, said, failed=seen.kind)

    def _event(self, names: Names, name: str, at: float, said: dict[str, Any]) -> None:
        turn = self._open.get(names.turn)
        if turn is not None:
            turn.events.append((name, at, said))

    def _close(self, names: Names, at: float, said: dict[str, Any], *, failed: str = "") -> None:
        turn = self._open.pop(names.turn, None)
        if turn is None:
            return
        kept = {key: value for key, value in turn.attributes.items() if value != ""}
        span = self._tracer.start_span(
            f"chat {names.model}",
            context=extract(turn.parent),
            kind=SpanKind.SERVER,
            attributes={**kept, "gen_ai.response.model": names.model, **said},
            start_time=int(turn.at * NANOSECONDS),
        )
        for name, moment, told in turn.events:
            span.add_event(name, told, timestamp=int(moment * NANOSECONDS))
        if failed:
            span.set_status(Status(StatusCode.ERROR, failed))
        span.end(end_time=int(at * NANOSECONDS))


def _used(usage: Usage) -> dict[str, int]:
    return {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
    }
