"""The same house without parser actors (`parser: inline`), as a second application of the cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.served import Server
from tests.cluster import wire
from tests.cluster.asks import APIS, tools
from tests.cluster.control import ENGINE, Control, until
from tests.cluster.driver import Driver
from tests.cluster.test_failures import assert_failed
from tests.protocols.apis import problems

pytestmark = pytest.mark.ray
EACH = pytest.mark.parametrize("api", APIS)
AT = "/inline"
WHOLE = 'Plain words: é, 🚀, "quotes" and a line\nbreak.'


@pytest.fixture
def inline(server: Server, driver: Driver) -> Control:
    """The application without parser actors, up and idle as the test begins."""
    control = Control(server, driver, app="inline", at=AT)
    until("its engine up", lambda: server.status(f"{AT}/health") == 200, within=60)
    until("its router told", control.routed)
    control.assert_idle()
    return control


def test_turns_at_once_are_each_whole_and_in_order(server: Server, inline: Control) -> None:
    def one(number: int) -> tuple[str, bytes]:
        api = APIS[number % len(APIS)]
        return api, wire.turn(server, api, f"only text, number {number}", at=AT)

    with ThreadPoolExecutor(12) as clients:
        answers = list(clients.map(one, range(36)))
    for api, raw in answers:
        assert problems(api, raw) == []
        assert wire.text(api, raw) == WHOLE
    inline.assert_idle()


@EACH
@pytest.mark.usefixtures("inline")
def test_calls_are_parsed_where_the_turn_is_served(server: Server, api: str) -> None:
    raw = wire.turn(server, api, "think and call in turn", at=AT, tools=tools(api))
    assert problems(api, raw) == []
    assert b'"name":"calculator"' in raw
    assert b'"name":"weather"' in raw


@EACH
def test_client_that_leaves_aborts_its_turn(server: Server, inline: Control, api: str) -> None:
    before = inline.aborts()
    wire.begun(server, api, at=AT).close()
    inline.assert_idle()
    assert inline.aborts() == before + 1


@EACH
def test_turn_dies_with_the_only_engine_and_the_next_engine_serves(
    server: Server, inline: Control, api: str
) -> None:
    stream = wire.begun(server, api, at=AT)
    (engine,) = inline.replicas(ENGINE).values()
    inline.kill(engine)
    assert_failed(api, stream.whole())
    until("the next engine", lambda: set(inline.replicas(ENGINE).values()) - {engine}, within=90)
    until("health", lambda: server.status(f"{AT}/health") == 200, within=60)
    assert wire.text(api, wire.turn(server, api, "only text", at=AT)) == WHOLE
    inline.assert_idle()
