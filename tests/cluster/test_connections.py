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


@pytest.mark.xfail(strict=False, reason="now and then one of the two answers does not come")
@EACH
def test_pipelined_requests_are_answered_in_their_order(
    server: Server, control: Control, api: str
) -> None:
    with connected(server) as connection:
        first = raw(api, "think first", stream=False)
        connection.sendall(first + raw(api, "only text", stream=False, close=True))
        found = read(connection)
    assert found.count(b"HTTP/1.1 200") == 2, found[:500]
    _, one, two = found.split(b"HTTP/1.1 200")
    assert b"The answer." in one
    assert b"The answer." not in two
    control.assert_idle()


@EACH
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_closes_its_half_early_has_left(
    server: Server, control: Control, api: str, stream: bool
) -> None:
    """HAProxy cannot tell it from one that is gone (`option abortonclose`); the turn ends with it."""
    with connected(server) as connection:
        connection.sendall(raw(api, "think first", stream=stream, close=True))
        connection.shutdown(socket.SHUT_WR)
        found = read(connection)
    refused = found.startswith(b"HTTP/1.1 400") and b"connection: close" in found.lower()
    whole = found.startswith(b"HTTP/1.1 200") and b"The answer." in found
    assert refused or whole, found[:500]  # never a part that looks whole
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
