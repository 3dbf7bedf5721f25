"""Connections as careless clients use them, through HAProxy: half of it closed, requests sent before
their turn, hung up on the last byte.
"""

from __future__ import annotations

import json
import socket

import pytest

from benchmarks.served import Server
from tests.cluster import wire
from tests.cluster.asks import APIS, PATHS, ask
from tests.cluster.control import Control, until

pytestmark = pytest.mark.ray
EACH = pytest.mark.parametrize("api", APIS)
REPLACED_AT_MOST = 3  # times in a row: Serve replaces it where replicas come or go
LAST = {"messages": b"message_stop", "responses": b"response.completed", "chat": b"[DONE]"}


def raw(api: str, words: str, *, stream: bool, close: bool = False) -> bytes:
    """A request as bytes."""
    body = json.dumps(ask(api, words, stream=stream)).encode()
    kept = "close" if close else "keep-alive"
    head = (
        f"POST {PATHS[api]} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: {kept}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=wire.PATIENCE)


def read(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    found = b""
    while piece := connection.recv(65_536):
        found += piece
    return found


def pipelined(server: Server, api: str) -> bytes:
    """What comes for two requests that are sent at once."""
    with connected(server) as connection:
        first = raw(api, "think first", stream=False)
        connection.sendall(first + raw(api, "only text", stream=False, close=True))
        return read(connection)


@EACH
def test_pipelined_requests_are_answered_in_their_order(
    server: Server, control: Control, api: str
) -> None:
    """An HAProxy that Serve is just replacing closes after the first, and says so (RFC 9112, 9.3.2)."""
    for _ in range(REPLACED_AT_MOST):
        found = pipelined(server, api)
        _, one, *rest = found.split(b"HTTP/1.1 200")
        assert b"The answer." in one
        if rest or b"connection: close" not in one:
            break
    assert len(rest) == 1, found[:500]
    assert b"The answer." not in rest[0]
    control.assert_idle()


@EACH
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_closes_its_half_early_has_left(
    server: Server, control: Control, api: str, stream: bool
) -> None:
    """As behind nginx or Cloudflare: it cannot be told from one that is gone, so its turn ends with it.

    It reads that in the words of the APIs, or the whole answer where that was there already; never
    a part that looks whole.
    """
    with connected(server) as connection:
        connection.sendall(raw(api, "think first", stream=stream, close=True))
        connection.shutdown(socket.SHUT_WR)
        found = read(connection)
    head, _, body = found.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 400"):
        refusal = json.loads(body)
        assert refusal["type"] == "error"
        assert refusal["error"]["type"] == "invalid_request_error"
        assert "keep the connection open" in refusal["error"]["message"]
    else:
        assert head.startswith(b"HTTP/1.1 200"), found[:500]
        assert b"The answer." in body
    control.assert_idle()


@EACH
def test_hanging_up_on_the_last_event_is_no_cancel(
    server: Server, control: Control, api: str
) -> None:
    """Codex closes as soon as it has read it, before the end of the body."""
    before, ended = control.aborts(), sum(control.metric("treadle_turns_ended_total").values())
    exchange = wire.post(server, api, ask(api, "think first"))
    exchange.until(LAST[api])
    exchange.close()
    until(
        "the turn to be counted as ended",
        lambda: sum(control.metric("treadle_turns_ended_total").values()) > ended,
    )
    control.assert_idle()
    assert control.aborts() == before
