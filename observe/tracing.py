"""Tracing: where spans go, decided once a process.

OpenTelemetry's own packages are asked for only where an endpoint is named, so nobody needs them
who exports nothing. Spans leave in batches from a thread of the SDK's; a collector that is away
costs a turn nothing.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

log = logging.getLogger(__name__)

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The environment variable that all of OpenTelemetry's SDKs read."""
NEEDED = "opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"


@cache
def tracer(room: str, endpoint: str = "") -> Tracer | None:
    """The tracer of a room, exporting by OTLP over HTTP to `endpoint` (a base URL, without
    `/v1/traces`) or to where the environment says; None where neither names one.
    """
    target = endpoint or os.environ.get(ENDPOINT, "")
    if not target:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        log.warning("no spans are exported: install %s (%s)", NEEDED, error)
        return None
    provider = TracerProvider(resource=Resource.create({"service.name": "treadle"}))
    exporter = OTLPSpanExporter(endpoint=f"{target.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider.get_tracer(room)
