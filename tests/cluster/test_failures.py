"""What dies in the middle of a turn: the turn goes on elsewhere, or its client is told in its API's
own words; docs/failures.md says which.
"""

from __future__ import annotations

import http.client
import json
import time
from itertools import cycle, islice
from typing import Any

import httpx
import psutil
import pytest

from actors.engines.scripted.compose import WORDS
from actors.model_service import SHUN_FOR
from actors.reception import owner
from benchmarks.served import Server
from tests.cluster import wire
from tests.cluster.asks import APIS, ask
from tests.cluster.control import ENGINE, Control, until
from tests.protocols.apis import parse, problems
from toolruns.decisions import ANSWER_SCHEMA

pytestmark = pytest.mark.ray
EACH = pytest.mark.parametrize("api", APIS)
AT_ONCE = 5.0
"""Seconds in which a new turn must have been served whole by what is left."""

LONG = 800
SAY = f"say {LONG} words"


def assert_failed(api: str, raw: bytes, message: str = "") -> None:
    """A stream that ends with its API's own error event, legally, with words for the client."""
    assert problems(api, raw) == []
    events: list[Any] = [event for _, event in parse(raw)]
    match api:
        case "messages":
            last = events[-1]
            assert last["type"] == "error"
            said = last["error"]["message"]
        case "responses":
            last = events[-1]
            assert last["type"] == "response.failed"
            said = last["response"]["error"]["message"]
        case _:
            assert events[-1] == "[DONE]"
            said = events[-2]["error"]["message"]
    assert message in said
    assert said


def assert_served(server: Server, api: str, began: float) -> None:
    """A turn that begins now is served whole, soon after the moment `began`."""
    raw = wire.turn(server, api, "think first")
    took = time.monotonic() - began
    assert problems(api, raw) == []
    assert wire.text(api, raw) == "The answer."
    assert took < AT_ONCE, f"served {took:.1f} s after the death"


def busy_engine(control: Control) -> str:
    """The replica that runs the only turn."""
    busy = [name for name, figures in control.engines().items() if figures["open_turns"]]
    assert len(busy) == 1
    return busy[0]


def assert_whole(api: str, raw: bytes) -> None:
    """The known answer, each word once."""
    assert problems(api, raw) == []
    assert wire.text(api, raw) == " ".join(islice(cycle(WORDS), LONG))


@EACH
def test_turn_goes_on_elsewhere_when_its_engine_dies(
    server: Server, control: Control, api: str
) -> None:
    stream = wire.begun(server, api, SAY)
    engine = busy_engine(control)
    killed = control.kill(control.replicas(ENGINE)[engine])
    assert_served(server, api, killed)
    assert_whole(api, stream.whole())
    until("both engines again", control.whole, within=90)
    assert engine not in control.routed()
    control.assert_idle()


@EACH
def test_turn_goes_on_elsewhere_when_its_parser_dies(
    server: Server, control: Control, api: str
) -> None:
    stream = wire.begun(server, api, SAY)
    engine = busy_engine(control)
    parser = next(name for name in control.parsers() if engine in name)
    before = control.parsers()[parser]
    killed = control.kill(before)
    assert_served(server, api, killed)
    assert_whole(api, stream.whole())
    until("another parser", lambda: control.parsers().get(parser, before) != before, within=60)
    until("both engines read", control.whole, within=60)
    control.assert_idle()
    assert engine in control.routed(), "the engine lives: only its parser died"
    pinned(server, control, api, engine)


def test_turn_leaves_an_engine_whose_process_is_frozen(server: Server, control: Control) -> None:
    stream = wire.begun(server, "messages", SAY)
    engine = busy_engine(control)
    process = psutil.Process(control.replicas(ENGINE)[engine])
    process.suspend()
    try:
        assert_whole("messages", stream.whole())
    finally:
        process.resume()
    until("both engines again", control.whole, within=90)
    control.assert_idle()


def test_streams_outlive_the_controller(server: Server, control: Control) -> None:
    """Serve's controller starts again by itself; nothing on a turn's way needs it."""
    streams = {api: wire.begun(server, api, SAY) for api in APIS}
    killed = control.kill(server.process_of("controller").pid)
    for api in APIS:
        assert_served(server, api, killed)
    for api, stream in streams.items():
        assert_whole(api, stream.whole())
    until("the controller back", control.whole, within=90)
    control.assert_idle()


def test_proxy_takes_its_connections_along_and_nothing_of_them_remains(
    server: Server, control: Control
) -> None:
    """HAProxy dies: its clients see a cut line, and their turns end; the next one serves."""
    streams = [wire.begun(server, api) for api in APIS]
    control.kill(server.process_of("haproxy").pid)
    for stream in streams:
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            stream.whole()
        stream.close()
    until("another proxy", lambda: server.status("/health") == 200, within=90)
    for api in APIS:
        assert wire.text(api, wire.turn(server, api, "think first")) == "The answer."
    control.assert_idle(within=60)


def pinned(server: Server, control: Control, api: str, engine: str) -> None:
    """Turns run on that very engine: they are begun until one of them does."""
    time.sleep(SHUN_FOR)  # for so long it is not chosen, having lost a turn
    streams = []
    while not control.engines()[engine]["open_turns"]:
        assert len(streams) < 10, "no turn comes to the engine whose parser was replaced"
        streams.append(wire.begun(server, api, f"go on for ever, number {len(streams)}"))
    for stream in streams:
        stream.close()
    control.assert_idle()


def test_turns_run_while_the_router_is_away(server: Server, control: Control) -> None:
    (pid,) = control.replicas("router").values()
    hashed = control.metric("treadle_router_decisions_total").get('why="hashed"', 0)
    killed = control.kill(pid)
    for api in APIS:
        assert_served(server, api, killed)
    assert control.metric("treadle_router_decisions_total")['why="hashed"'] >= hashed + 3
    until("the router back with both engines", control.whole, within=60)
    control.assert_idle()
    wire.turn(server, "chat", "only text")
    assert control.metric("treadle_router_decisions_total")['why="hashed"'] == hashed + 3


def test_ingress_takes_its_turns_along_and_nothing_of_them_remains(
    server: Server, control: Control
) -> None:
    """The only one of this cluster: its clients see a cut line, and the next one serves. It also
    knows the tool calls that were made through the other, from the store.
    """
    call_id = a_call(server, "alice")
    streams = [wire.begun(server, api) for api in APIS]
    control.kill(server.process_of("ingress").pid)
    for stream in streams:
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            stream.whole()
        stream.close()
    until("another ingress", lambda: server.status("/health") == 200, within=90)
    for api in APIS:
        assert wire.text(api, wire.turn(server, api, "think first")) == "The answer."
    until("both engines read", control.whole, within=60)
    assert json.loads(decision(control, call_id, "alice")) == {"decision": "stop"}
    with pytest.raises(AssertionError, match="no such open tool call"):
        decision(control, call_id, "bob")
    control.assert_idle(within=60)


def key_of(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


def a_call(server: Server, key: str) -> str:
    """The id of a tool call, as the client was told it."""
    turn = {
        "model": "lab-model",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "Please listen to the heartbeat."}],
        "tools": [{"name": "heartbeat", "input_schema": {"type": "object"}}],
    }
    answer = httpx.post(server.url("/v1/messages"), json=turn, headers=key_of(key), timeout=60)
    (found,) = [one["id"] for one in answer.json()["content"] if one["type"] == "tool_use"]
    return str(found)


def decision(control: Control, call_id: str, key: str) -> str:
    """What the model that made the call says of it, asked as the gateway of the tools does."""
    asked = {"call_id": call_id, "owner": owner(key_of(key)), "schema": ANSWER_SCHEMA}
    said = control.ask(
        "ask", deployment="ingress", method="decide", text="INTERIM: chunk 1", **asked
    )
    return str(said)


@EACH
def test_engine_that_fails_a_turn_fails_it_in_the_stream(
    server: Server, control: Control, api: str
) -> None:
    raw = wire.turn(server, api, "please fail")
    assert_failed(api, raw, "the scenario failed this turn")
    assert wire.DELTAS[api] in raw
    control.assert_idle()


@EACH
def test_engine_that_fails_before_it_says_anything_is_a_status(server: Server, api: str) -> None:
    exchange = wire.post(server, api, ask(api, "please fail at once", stream=False))
    assert exchange.status == 500
    assert "the scenario failed this turn" in exchange.json()["error"]["message"]


@EACH
def test_stream_that_fails_at_once_is_a_status_within_the_patience(
    server: Server, api: str
) -> None:
    """On a machine so slow that a keep-alive had to come first, it is an event instead."""
    exchange = wire.post(server, api, ask(api, "please fail at once"))
    if exchange.status == 200:
        assert_failed(api, exchange.whole(), "the scenario failed this turn")
    else:
        assert exchange.status == 500
        assert "the scenario failed this turn" in exchange.json()["error"]["message"]
