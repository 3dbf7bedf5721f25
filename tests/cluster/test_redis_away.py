"""The store dies under load: turns go on without it, it is seen, and it comes back with its data."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.served import Server
from tests.cluster import churn, wire
from tests.cluster.asks import ask
from tests.cluster.control import Control, until

pytestmark = pytest.mark.ray


def test_store_dies_under_load_and_comes_back_with_its_data(
    server: Server, control: Control
) -> None:
    """Who would start it again at once is held until the load is over."""
    body = ask("responses", "think first", store=True, stream=False)
    until("the store there", lambda: control.metric("treadle_redis_up")[""] == 1)
    kept = wire.post(server, "responses", body).json()["id"]
    troubles = sum(control.metric("treadle_redis_trouble_total").values())

    def noticed() -> bool:
        return sum(control.metric("treadle_redis_trouble_total").values()) > troubles

    valkey, owner = server.process_of("valkey"), server.process_of("store")
    owner.suspend()
    try:
        control.kill(valkey.pid)
        made = churn.turns(server.port, 60, seed=7)
        tally = asyncio.run(churn.run(server.port, made, at_once=16))
        assert tally.wrong == []
        # It is asked again at growing intervals: some turn will be the one that notices.
        until("it noticed", lambda: wire.turn(server, "chat", "only text") and noticed())
        assert control.metric("treadle_redis_up")[""] == 0
    finally:
        owner.resume()
    until("the store back", lambda: control.metric("treadle_redis_up")[""] == 1)
    assert control.metric("treadle_redis_away_seconds_total")[""] > 0
    assert server.process_of("valkey").pid != valkey.pid
    again = wire.get(server, f"/v1/responses/{kept}")
    assert again.status == 200
    assert again.json()["id"] == kept
    control.assert_idle()


def test_what_needs_the_store_is_refused_while_it_is_away(server: Server, control: Control) -> None:
    """Never a false "not found", and never a wait: the client shall come again."""
    stored = wire.post(
        server, "responses", ask("responses", "think first", store=True, stream=False)
    )
    body = ask("responses", "only text", previous_response_id=stored.json()["id"])
    valkey = server.process_of("valkey")
    valkey.suspend()  # it is there and answers nothing, which is worse than a death
    try:
        first = wire.post(server, "responses", body)
        assert first.status == 503
        assert int(first.header("retry-after")) >= 1
        assert "again" in first.json()["error"]["message"]
        until("the metric", lambda: control.metric("treadle_redis_up")[""] == 0)
        raw = wire.turn(server, "messages", "think first")
        assert wire.text("messages", raw) == "The answer."
    finally:
        valkey.resume()
    until("the store back", lambda: control.metric("treadle_redis_up")[""] == 1)
    assert b"response.completed" in wire.post(server, "responses", body).whole()
    control.assert_idle()
