"""More turns than there are places: refused at once and before any byte, and none of it remains."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from benchmarks.served import Server
from tests.cluster import wire
from tests.cluster.asks import APIS, ask
from tests.cluster.control import Control, until

pytestmark = pytest.mark.ray
EACH = pytest.mark.parametrize("api", APIS)
PLACES = 80
"""What both engines take at once, by cluster.yaml."""

QUEUE = 4
SLOW = ask("chat", "go on slowly for ever")
STATUS = {"messages": 529, "responses": 429, "chat": 429}
KIND = {"messages": "overloaded_error", "responses": "rate_limit_error", "chat": "rate_limit_error"}


@contextlib.contextmanager
def full(server: Server, control: Control) -> Iterator[list[wire.Exchange]]:
    """Every place of both engines taken, and every place in the queue; in this order."""
    held: list[wire.Exchange] = []
    try:
        for _ in range(PLACES):  # one after the other: where the router is late, who places a
            held.append(wire.post(server, "chat", SLOW))  # turn knows of all that were before it
            assert held[-1].status == 200
        until("all of them run", lambda: settled(control.counts()))
        held += [queued(server, control) for _ in range(QUEUE)]
        yield held
    finally:
        for stream in held:
            stream.close()


def settled(counts: dict[str, int]) -> bool:
    """All places are taken, and the router has given them all and been told so by the engines."""
    full = all(counts[what] == PLACES for what in ("running", "reserved", "reported"))
    return full and not counts["waiting"] and not counts["queued"]


def queued(server: Server, control: Control) -> wire.Exchange:
    """A turn that waits in the router's queue.

    Where the router is late, on a loaded machine, an ingress refuses by its own count instead.
    """
    before = control.queued()
    for _ in range(20):
        exchange = wire.post(server, "chat", SLOW)
        if waits(control, exchange, before):
            return exchange
        assert exchange.status == STATUS["chat"], control.counts()
        exchange.close()
    raise AssertionError("twenty turns were refused where there is a queue")


def waits(control: Control, exchange: wire.Exchange, before: int) -> bool:
    until("queued or refused", lambda: control.queued() > before or exchange.answered())
    return not exchange.answered()


def test_turn_too_many_is_refused_before_any_byte(server: Server, control: Control) -> None:
    with full(server, control):
        for api in APIS:
            for stream in (True, False):
                refused = wire.post(server, api, ask(api, "only text", stream=stream))
                assert refused.status == STATUS[api]
                assert int(refused.header("retry-after")) >= 1
                error = refused.json()["error"]
                assert error["type"] == KIND[api]
                assert "try again" in error["message"]
        assert control.counts()["running"] == PLACES
    control.assert_idle()


def test_turn_that_waits_runs_when_a_place_comes_free(server: Server, control: Control) -> None:
    with full(server, control) as held:
        held[0].close()
        until("one of those that waited", lambda: [w for w in held[-QUEUE:] if w.answered()])
        (runs,) = [waiting for waiting in held[-QUEUE:] if waiting.answered()]
        assert runs.status == 200
        runs.until(wire.DELTAS["chat"])
        assert control.counts()["running"] == PLACES
    control.assert_idle()


def test_client_that_leaves_the_queue_leaves_its_place_in_it(
    server: Server, control: Control
) -> None:
    with full(server, control) as held:
        held.pop().close()
        until("one place in the queue", lambda: control.queued() == QUEUE - 1)
        held.append(queued(server, control))
        one_more = wire.post(server, "chat", SLOW)
        assert one_more.status == STATUS["chat"]
        one_more.close()
    control.assert_idle()
