"""Recorded trajectories as OpenTelemetry spans, made when a run has ended.

The record is the truth and the span is made from it: GenAI and MCP conventions for what was
called, our own attributes for how it went. Rows never travel: a chunk's event has its digest.
The caller's trace goes on where it sent one (`_meta.traceparent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from toolruns.gateway.caller import Caller
from toolruns.gateway.profiles import call_id_of
from toolruns.rows.handles import Record
from toolruns.snapshot import FAILURES
from toolruns.trajectory import Entry, span_of

NANOSECONDS = 10**9
TRACE = ("traceparent", "tracestate", "baggage")


class Spans:
    """Exports through a tracer of anybody's; what becomes of a span is the tracer's business."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def ended(self, record: Record, entries: list[Entry], caller: Caller) -> None:
        """One span for one run."""
        made = span_of(entries, record.tool, call_id_of(caller.meta), caller.version)
        began = int(record.created * NANOSECONDS)
        span = self._tracer.start_span(
            made["name"],
            context=extract(_trace_of(caller.meta)),
            kind=SpanKind.SERVER,
            attributes=made["attributes"],
            start_time=began,
        )
        last = 0.0
        for name, t_ms, attributes in made["events"]:
            last = t_ms
            span.add_event(name, attributes, timestamp=began + int(t_ms * 10**6))
        reason = str(made["attributes"].get("streamtool.reason", ""))
        if reason in FAILURES:
            span.set_attribute("error.type", reason)
            span.set_status(Status(StatusCode.ERROR, reason))
        span.end(end_time=began + int(last * 10**6))


def _trace_of(meta: Mapping[str, Any]) -> dict[str, str]:
    return {name: meta[name] for name in TRACE if isinstance(meta.get(name), str)}
