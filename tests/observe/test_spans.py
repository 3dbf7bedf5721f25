"""Traces as a collector gets them: OTLP over HTTP, read by OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `tracing`")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk.trace import TracerProvider

from observe.spans import TurnSpans
from observe.taps import Taps
from observe.trace_context import carrying
from observe.tracing import tracer
from tests.observe.conftest import tell_all
from tests.serving.keyed import asking
from tests.serving.server import serving

TRACE_ID, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE_ID}-{PARENT}-01"}


class Collector(HTTPServer):
    """Takes what is exported, and keeps its spans."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.spans: list[Any] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        assert self.path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.server.spans += scope.spans  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def exported(collector: Collector) -> list[Any]:
    """All spans of the tracer, flushed."""
    made: Any = tracer("turns", collector.url)
    provider: TracerProvider = made.span_processor
    assert provider.force_flush(10_000)  # type: ignore[no-untyped-call]
    return sorted(collector.spans, key=lambda span: int(span.start_time_unix_nano))


def spans_to(collector: Collector) -> TurnSpans:
    made = tracer("turns", collector.url)
    assert made is not None
    return TurnSpans(made)


def attributes(of: Any) -> dict[str, Any]:
    found = {}
    for one in of.attributes:
        value = one.value
        kind = value.WhichOneof("value")
        found[one.key] = (
            [item.string_value for item in value.array_value.values]
            if kind == "array_value"
            else getattr(value, kind)
        )
    return found


def test_everything_told_of_a_turn_is_in_its_span(collector: Collector) -> None:
    with carrying(HEADERS):
        tell_all(spans_to(collector))
    ended, failed = exported(collector)
    assert ended.name == "chat m"
    assert (ended.trace_id.hex(), ended.parent_span_id.hex()) == (TRACE_ID, PARENT)
    said = attributes(ended)
    assert said["gen_ai.operation.name"] == "chat"
    assert said["gen_ai.conversation.id"] == "session-1"
    assert said["gen_ai.response.finish_reasons"] == ["length"]
    assert said["gen_ai.usage.input_tokens"] == 100
    assert said["gen_ai.usage.cache_read.input_tokens"] == 64
    assert (ended.end_time_unix_nano - ended.start_time_unix_nano) == 10**9
    assert [event.name for event in ended.events] == [
        "treadle.routed",
        "treadle.routed",
        "treadle.started",
        "gen_ai.first_token",
        "treadle.call_ready",
        "treadle.call_cut",
    ]
    assert attributes(failed)["error.type"] == "engine"
    assert failed.status.code == 2


async def test_a_harness_trace_goes_on_through_a_real_turn(collector: Collector) -> None:
    words = "the words of a person"
    async with serving() as server:
        server.ingress.taps = Taps(server.ingress.taps, spans_to(collector))
        server.says({"text": "What a model says."})
        body = asking("/v1/messages", messages=[{"role": "user", "content": words}])
        for headers in (HEADERS, {}):
            await server.http.post("/v1/messages", json=body, headers=headers)
    first, second = exported(collector)
    assert first.trace_id.hex() == TRACE_ID
    assert second.trace_id.hex() != TRACE_ID
    assert second.parent_span_id == b""
    text = f"{first}{second}"
    assert words not in text
    assert "What a model" not in text


def test_without_an_endpoint_there_is_no_tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert tracer("nowhere") is None
