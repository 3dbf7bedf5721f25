"""What is served beside turns: the list of models in both shapes, health as long as there is one."""

from __future__ import annotations

import pytest

from benchmarks.served import Server
from tests.cluster import wire
from tests.cluster.asks import APIS, ask
from tests.cluster.control import ENGINE, Control, until

pytestmark = pytest.mark.ray
ANTHROPIC = {"anthropic-version": "2023-06-01"}
NAMES = ["lab-model", "lab/deep/name"]


def test_models_in_the_shape_of_openai(server: Server) -> None:
    listed = wire.get(server, "/v1/models").json()
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == NAMES
    assert {model["object"] for model in listed["data"]} == {"model"}


def test_models_in_the_shape_of_anthropic(server: Server) -> None:
    listed = wire.get(server, "/v1/models?limit=1000", ANTHROPIC).json()
    assert [model["id"] for model in listed["data"]] == NAMES
    assert {model["type"] for model in listed["data"]} == {"model"}
    assert (listed["has_more"], listed["first_id"], listed["last_id"]) == (False, *NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("headers", [{}, ANTHROPIC], ids=["openai", "anthropic"])
def test_model_is_found_by_its_id_slashes_and_all(
    server: Server, name: str, headers: dict[str, str]
) -> None:
    found = wire.get(server, f"/v1/models/{name}", headers)
    assert found.status == 200
    assert found.json()["id"] == name


def test_model_that_is_not_there_is_a_404(server: Server) -> None:
    missing = wire.get(server, "/v1/models/lab/deep")
    assert missing.status == 404
    assert missing.json()["error"]["code"] == "model_not_found"


@pytest.mark.parametrize("api", APIS)
def test_turn_by_the_id_with_slashes(server: Server, api: str) -> None:
    exchange = wire.post(server, api, ask(api, "only text") | {"model": "lab/deep/name"})
    assert exchange.status == 200
    assert b'"model":"lab/deep/name"' in exchange.whole()


def test_no_engine_is_said_until_one_is_up(server: Server, control: Control) -> None:
    assert server.status("/health") == 200
    for pid in control.replicas(ENGINE).values():
        control.kill(pid)
    until("health that tells", lambda: server.status("/health") == 503)
    exchange = wire.post(server, "chat", ask("chat", "think first"))
    raw = exchange.whole()
    if exchange.status == 200:  # it was held until an engine was up
        assert wire.text("chat", raw) == "The answer."
    else:
        assert exchange.status == 503
        assert int(exchange.header("retry-after")) >= 1
        assert b"try again" in raw
    until("an engine up", lambda: server.status("/health") == 200, within=90)
    raw = wire.turn(server, "chat", "think first")
    assert wire.text("chat", raw) == "The answer."
    until("both engines again", control.whole, within=90)
