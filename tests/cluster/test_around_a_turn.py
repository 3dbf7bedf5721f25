"""What surrounds a turn, through HAProxy and Serve: codings, ids, headers, sockets, the background."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from websockets.sync.client import connect

from benchmarks.served import Server
from tests.cluster import wire
from tests.cluster.asks import APIS, MODEL, PATHS, ask
from tests.cluster.control import Control, until

pytestmark = pytest.mark.ray
EACH = pytest.mark.parametrize("api", APIS)
RESPONSES = PATHS["responses"]


def send(
    server: Server, path: str, body: Any, headers: dict[str, str] | None = None
) -> wire.Exchange:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return wire.Exchange(server, path, data, headers)


@EACH
def test_a_coded_body_is_a_body(server: Server, api: str) -> None:
    body = gzip.compress(json.dumps(ask(api, "think first")).encode())
    exchange = send(server, PATHS[api], body, {"content-encoding": "gzip"})
    assert exchange.status == 200
    assert wire.text(api, exchange.whole()) == "The answer."


@EACH
@pytest.mark.parametrize("stream", [True, False])
def test_a_response_names_its_request_once(server: Server, api: str, stream: bool) -> None:
    """Serve says `x-request-id` itself; a second one would be read as one id of two."""
    for headers in ({}, {"x-request-id": "mine-1"}):
        for body in (ask(api, "think first", stream=stream), {"model": "nope"}):
            exchange = send(server, PATHS[api], body, headers)
            exchange.whole()
            said = exchange.response.headers
            assert said.get_all("x-request-id") == said.get_all("request-id")
            assert len(said.get_all("request-id") or ()) == 1
            assert said["request-id"] == headers.get("x-request-id", said["request-id"])


def test_no_client_can_keep_an_engine_at_work(server: Server, control: Control) -> None:
    """The header would have Serve overlook that the client left."""
    before = control.aborts()
    headers = {"x-request-disconnect-disabled": "?1"}
    exchange = send(server, PATHS["chat"], ask("chat", "go on for ever"), headers)
    exchange.until(wire.DELTAS["chat"], 2)
    exchange.close()
    control.assert_idle()
    assert control.aborts() == before + 1


def test_no_client_sets_serves_own_time_limit(server: Server) -> None:
    headers = {"x-request-timeout-seconds": "0.5"}
    exchange = send(server, PATHS["chat"], ask("chat", "start late", stream=False), headers)
    assert exchange.status == 200
    assert "Here at last." in exchange.whole().decode()


@pytest.mark.parametrize("api", ["messages", "responses"])
def test_a_count_is_what_the_turn_is_charged(server: Server, api: str) -> None:
    path = {"messages": "/v1/messages/count_tokens", "responses": f"{RESPONSES}/input_tokens"}[api]
    body = ask(api, "only text", stream=False)
    usage = send(server, PATHS[api], body).json()["usage"]
    cached = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
    assert send(server, path, body).json()["input_tokens"] == usage["input_tokens"] + cached


def test_codex_speaks_over_a_socket(server: Server, control: Control) -> None:
    url = f"ws://127.0.0.1:{server.port}{RESPONSES}"
    with connect(url, proxy=None, open_timeout=30) as socket:
        previous = None
        for words in ("think first", "only text"):
            frame = {"type": "response.create", "model": MODEL, "store": False}
            said = [{"role": "user", "content": words}]
            socket.send(json.dumps(frame | {"input": said, "previous_response_id": previous}))
            kinds = []
            while not kinds or kinds[-1] != "response.completed":
                event = json.loads(socket.recv(timeout=30))
                kinds.append(event["type"])
            previous = event["response"]["id"]
        assert event["response"]["usage"]["input_tokens"] > 20  # the first question is in it
        socket.send(json.dumps(frame | {"input": "go on for ever"}))
        while "delta" not in json.loads(socket.recv(timeout=30)):
            pass
        before = control.aborts()
    control.assert_idle()
    assert control.aborts() == before + 1


def test_a_stored_response_is_found_and_gone_on_from(server: Server) -> None:
    first = send(server, RESPONSES, ask("responses", "think first", stream=False)).json()
    assert wire.get(server, f"{RESPONSES}/{first['id']}").json() == first
    more = ask("responses", "only text", stream=False, previous_response_id=first["id"])
    second = send(server, RESPONSES, more).json()
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]
    items = wire.get(server, f"{RESPONSES}/{second['id']}/input_items").json()
    assert [item["content"] for item in items["data"]] == ["only text"]


def test_a_background_response_runs_on(server: Server, control: Control) -> None:
    body = ask("responses", "start late", stream=False, background=True)
    queued = send(server, RESPONSES, body).json()
    assert queued["status"] == "queued"

    def status() -> str:
        return str(wire.get(server, f"{RESPONSES}/{queued['id']}").json()["status"])

    until("it to be done", lambda: status() == "completed")
    endless = ask("responses", "go on for ever", stream=False, background=True)
    running = send(server, RESPONSES, endless).json()
    until("it to run", lambda: control.counts()["running"])
    cancelled = send(server, f"{RESPONSES}/{running['id']}/cancel", b"").json()
    assert cancelled["status"] == "cancelled"
    control.assert_idle()
