"""Recorded trajectories as spans, as a collector receives them."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from observe.tracing import tracer
from tests.toolruns.gateway.house import call, eventually, house
from tests.toolruns.gateway.test_http import body_of, site
from toolruns.gateway.spans import Spans

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def kept():
    return InMemorySpanExporter()


@pytest.fixture
def spans(kept):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    return Spans(provider.get_tracer("toolruns"))


async def test_a_run_is_one_span_in_the_words_of_the_conventions(tmp_path, kept, spans):
    async with house(tmp_path, spans=spans) as home, home.client() as client:
        meta = {"claudecode/toolUseId": "toolu_1", "traceparent": PARENT}
        async with asyncio.timeout(30):
            arguments = {"do": "endless", "consume_until": "count >= 30"}
            await client.call_tool("orders", arguments, meta=meta)
        await eventually(kept.get_finished_spans)
    (span,) = kept.get_finished_spans()
    assert span.name == "execute_tool orders"
    told = dict(span.attributes)
    assert told.pop("streamtool.trajectory").startswith("trj_")
    assert told == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "orders",
        "gen_ai.tool.type": "datastore",
        "gen_ai.tool.call.id": "toolu_1",
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "streamtool.reason": "predicate_satisfied",
        "streamtool.rows": 32,
        "streamtool.complete": False,
    }
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]
    names = [event.name for event in span.events]
    assert names[0] == "trajectory.opened"
    assert "trajectory.terminated" in names
    chunk = next(event for event in span.events if event.name == "chunk.received")
    assert chunk.attributes["streamtool.rows"] == 32
    assert chunk.attributes["streamtool.digest"]
    assert "amount" not in span.to_json(), "rows are named, never sent"
    assert span.start_time <= span.events[0].timestamp <= span.end_time


async def test_a_run_that_failed_is_an_error(tmp_path, kept, spans):
    async with house(tmp_path, spans=spans) as home, home.client() as client:
        await call(client, "orders", do="fail")
        await eventually(kept.get_finished_spans)
    (span,) = kept.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "upstream_error"


async def test_a_collector_receives_them_over_http(tmp_path):
    proto = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2",
        reason="no OTLP packages are installed",
    )
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="no OTLP exporter")
    received = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                import gzip  # noqa: PLC0415

                body = gzip.decompress(body)
            received.append((self.path, proto.ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Nothing to say."""

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        listening = threading.Thread(target=server.serve_forever)
        listening.start()
        try:
            made = tracer("toolruns", f"http://127.0.0.1:{server.server_port}")
            async with house(tmp_path, spans=Spans(made)) as home, home.client() as client:
                await call(client, "orders", do="end")
            await asyncio.to_thread(made.span_processor.force_flush, 20_000)
        finally:
            made.span_processor.shutdown()
            server.shutdown()
            listening.join()
    ((path, request),) = received
    assert path == "/v1/traces"
    (resource,) = request.resource_spans
    assert {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"] == (
        "treadle"
    )
    (span,) = resource.scope_spans[0].spans
    assert span.name == "execute_tool orders"


def test_without_an_endpoint_nothing_is_exported(monkeypatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    assert tracer("toolruns-nowhere") is None


async def test_a_trace_of_the_http_request_goes_on(tmp_path, free_port, kept, spans):
    """A harness that knows nothing of MCP's `_meta` sends it as it does to any server."""
    async with (
        site(tmp_path, free_port, spans=spans) as here,
        httpx.AsyncClient(timeout=60) as http,
    ):
        arguments = {"do": "endless", "consume_until": "count >= 30"}
        body, headers = body_of("modern", "orders", arguments)
        answer = await http.post(here.url, json=body, headers=headers | {"traceparent": PARENT})
        assert answer.status_code == 200, answer.text
        await eventually(kept.get_finished_spans)
    (span,) = kept.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
