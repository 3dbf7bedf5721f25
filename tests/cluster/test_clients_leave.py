"""Clients that leave: their turns end in the engine at once, and nothing of them remains."""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import time

import pytest

from benchmarks.served import Server
from tests.cluster import churn, wire
from tests.cluster.asks import APIS, ask
from tests.cluster.control import Control, until

pytestmark = pytest.mark.ray
EACH = pytest.mark.parametrize("api", APIS)
LIMIT = 0.25
"""Seconds from the client's close to the abort in the engine's own count."""

TURNS = int(os.environ.get("TREADLE_CHURN_TURNS", "2000"))
AT_ONCE = 64  # of 80 places: who has left holds its place until its engine lets go


def slowdown() -> float:
    """How much longer anything takes here than on an idle machine: waiting processes per core."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def test_abort_reaches_the_engine_within_250_ms(server: Server, control: Control) -> None:
    """Seen from the close of the socket to the first poll that shows the engine's count, on one
    monotonic clock, the poll's own time included. The median of nine closes, three on each API;
    where more processes wait than there are cores, the limit grows by how many wait on each.
    """
    took = []
    for api in APIS * 3:
        stream = wire.begun(server, api)
        before = control.aborts()
        closed = time.monotonic()
        stream.close()
        until("an abort", lambda before=before: control.aborts() > before, every=0)
        took.append(time.monotonic() - closed)
    assert statistics.median(took) < LIMIT * slowdown(), f"took {sorted(took)} s"
    control.assert_idle()


@EACH
def test_client_that_leaves_before_the_first_event_aborts_too(
    server: Server, control: Control, api: str
) -> None:
    before = control.aborts()
    exchange = wire.post(server, api, ask(api, "start late"))
    until("the turn in an engine", lambda: control.counts()["running"])
    exchange.close()
    control.assert_idle()
    assert control.aborts() == before + 1


@EACH
@pytest.mark.parametrize("pause", [0.0, 0.05], ids=["at_once", "body_later"])
def test_client_that_leaves_a_whole_answer_aborts_too(
    server: Server, control: Control, api: str, pause: float
) -> None:
    before = control.aborts()
    exchange = wire.post(server, api, ask(api, "go on for ever", stream=False), pause=pause)
    until("the turn in an engine", lambda: control.counts()["running"])
    exchange.close()
    control.assert_idle()
    assert control.aborts() == before + 1


@pytest.mark.timeout(600)
def test_nothing_remains_of_thousands_of_turns_half_of_them_left(
    server: Server, control: Control
) -> None:
    assert control.ingress()["wakeups"] == [False, False]  # else answers may stop for seconds
    ingress = server.process_of("ingress")
    files = ingress.num_fds()
    made = churn.turns(server.port, TURNS, seed=20_26)
    tally = asyncio.run(churn.run(server.port, made, at_once=AT_ONCE))
    assert tally.wrong == []
    assert tally.whole == sum(turn.leaves_after is None for turn in made)
    assert tally.left > TURNS // 4
    control.assert_idle()
    # HAProxy and the store's client keep connections for what was open at once, not for all of it.
    assert ingress.num_fds() <= files + 2 * AT_ONCE
    ended = sum(control.metric("treadle_turns_ended_total").values())
    assert ended >= tally.whole


def test_response_in_the_background_goes_on_without_its_client(
    server: Server, control: Control
) -> None:
    body = ask("responses", "say 300 words", background=True, store=True)
    exchange = wire.post(server, "responses", body)
    exchange.until(wire.DELTAS["responses"], 3)
    exchange.close()
    found = re.search(rb'"id":"(resp_\w+)"', exchange.raw)
    assert found

    def finished() -> bool:
        answer = wire.get(server, f"/v1/responses/{found[1].decode()}").json()
        assert answer["status"] in ("queued", "in_progress", "completed"), answer
        return answer["status"] == "completed"

    until("the response finished", finished)
    control.assert_idle()
