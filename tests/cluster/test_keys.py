"""Keys on a cluster: each of two ingresses asked by itself, and the front door before them.

`tests/serving/test_access.py` has the whole table; here is what a second process could get wrong.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.served import Server, served
from tests.cluster.asks import APIS, PATHS, ask
from tests.cluster.control import until
from tests.cluster.driver import Driver
from tests.serving.keyed import KEYS, bearer, refused

pytestmark = pytest.mark.ray
APP = "keyed"
ADMIN = "the-admin-of-the-cluster-of-the-tests"

WORDS = "only text, said by nobody-but-this-tenant"
UNAUTHORISED = {"messages": "authentication_error"}


class Keyed(NamedTuple):
    """Clients of the front door and of each ingress behind it; keys of two tenants."""

    door: httpx.Client
    each: list[httpx.Client]
    acme: dict[str, Any]
    umbrella: dict[str, Any]
    ops: dict[str, Any]


def ports(driver: Driver) -> list[int]:
    """Where the ingresses of the application listen, HAProxy's way round."""
    found = []
    for pid in driver.ask("replicas", app=APP, deployment="ingress").values():
        listening = [
            one.laddr.port
            for one in psutil.Process(pid).net_connections("tcp4")
            if one.status == psutil.CONN_LISTEN and 20_000 <= one.laddr.port < 30_050
        ]
        found += listening[:1]
    return found


def made(http: httpx.Client, tenant: str, **wanted: Any) -> dict[str, Any]:
    answer = http.post(KEYS, json={"tenant": tenant} | wanted, headers=bearer(ADMIN))
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A cluster of its own: one that listens beyond loopback refuses to start without keys."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TREADLE_TESTS_ADMIN", ADMIN)
        with served(Path(__file__).with_name("keyed.yaml"), ["/health"]) as running:
            yield running
    assert running.processes() == [], "the server left processes behind"


@pytest.fixture(scope="module")
def keyed(server: Server) -> Iterator[Keyed]:
    driver = Driver(server)
    behind = until("both ingresses", lambda: seen if len(seen := ports(driver)) == 2 else [])
    driver.close()
    with contextlib.ExitStack() as stack:

        def client(port: int) -> httpx.Client:
            url = f"http://127.0.0.1:{port}"
            return stack.enter_context(httpx.Client(base_url=url, timeout=60))

        door = client(server.port)
        each = [client(port) for port in behind]
        yield Keyed(
            door,
            each,
            made(door, "acme"),
            made(door, "umbrella"),
            made(door, "ops", scopes=["metrics"]),
        )


def found(http: httpx.Client, path: str, headers: dict[str, str]) -> bool:
    return http.get(path, headers=headers).status_code == 200


def whole(api: str, words: str = WORDS, **fields: Any) -> dict[str, Any]:
    return ask(api, words, stream=False, **fields)


def test_it_listens_beyond_loopback(keyed: Keyed) -> None:
    """Any address of this machine but the one that servers on loopback have."""
    url = f"http://127.0.0.2:{keyed.door.base_url.port}/v1/models"
    assert httpx.get(url, headers=bearer(keyed.acme["key"])).status_code == 200


@pytest.mark.parametrize("api", APIS)
def test_each_ingress_refuses_in_the_apis_shape(keyed: Keyed, api: str) -> None:
    good = keyed.acme["key"]
    shown: list[dict[str, str]] = [
        {},
        bearer("sk-of-elsewhere"),
        bearer(good[:-1] + ("A" if good[-1] != "A" else "B")),
        bearer(good.replace(keyed.acme["id"], keyed.umbrella["id"])),
    ]
    for http in (*keyed.each, keyed.door):
        for headers in shown:
            answer = http.post(PATHS[api], json=whole(api), headers=headers)
            assert answer.status_code == 401, headers
            assert refused(answer, PATHS[api]) == UNAUTHORISED.get(api, "invalid_api_key")
        answer = http.post(PATHS[api], json=whole(api), headers=bearer(good))
        assert answer.status_code == 200, answer.text
        answer = http.post(PATHS[api], json=whole(api), headers=bearer(keyed.ops["key"]))
        assert answer.status_code == 403


def test_a_key_made_at_one_ingress_opens_the_other_and_revoked_there_closes_it(
    keyed: Keyed,
) -> None:
    one, other = keyed.each
    key = made(one, "acme")
    for http in keyed.each:
        assert http.get("/v1/models", headers=bearer(key["key"])).status_code == 200
    assert one.delete(f"{KEYS}/{key['id']}", headers=bearer(ADMIN)).status_code == 200
    assert one.get("/v1/models", headers=bearer(key["key"])).status_code == 401

    def closed() -> bool:
        return other.get("/v1/models", headers=bearer(key["key"])).status_code == 401

    until("the other ingress refuses it", closed)
    assert one.get("/v1/models", headers=bearer(key["key"])).status_code == 401


def test_what_a_tenant_stores_is_his_at_each_ingress(keyed: Keyed) -> None:
    mine, theirs = bearer(keyed.acme["key"]), bearer(keyed.umbrella["key"])
    one, other = keyed.each
    session = {"x-treadle-session": "the-same-name"}
    first = one.post("/v1/responses", json=whole("responses"), headers=mine | session).json()
    then = whole("responses", previous_response_id=first["id"])
    stored = other.post("/v1/responses", json=then, headers=mine | session).json()
    talk = one.post("/v1/conversations", json={}, headers=mine).json()
    name = stored["id"]
    places = [f"/v1/responses/{name}", f"/v1/conversations/{talk['id']}"]
    about = f"/v1/treadle/turns/{name}"
    for http in keyed.each:
        for place in places:
            assert http.get(place, headers=mine).status_code == 200, place
            assert http.get(place, headers=theirs).status_code == 404, place
        for part in ("prefix", "trace"):
            until(part, partial(found, http, f"{about}/{part}", mine))
            assert http.get(f"{about}/{part}", headers=theirs | session).status_code == 404
        on = whole("responses", previous_response_id=name)
        refusal = http.post("/v1/responses", json=on, headers=theirs)
        assert refusal.json()["error"]["code"] == "previous_response_not_found"
    assert other.delete(places[0], headers=theirs).status_code == 404
    assert other.delete(places[0], headers=mine).status_code == 200
    assert one.get(places[0], headers=mine).status_code == 404


def test_a_tenants_tokens_are_no_others(keyed: Keyed) -> None:
    """The ledger and the engines' caches: the same words are new to the other tenant."""
    body = whole("messages", "only text", system="A prompt of its own, and a long one. " * 20)
    cached: dict[str, list[int]] = {}
    for tenant in ("acme", "umbrella"):
        key = bearer(getattr(keyed, tenant)["key"])
        for http in keyed.each:
            answer = http.post("/v1/messages", json=body, headers=key).json()
            seen = answer["usage"].get("cache_read_input_tokens") or 0
            cached.setdefault(tenant, []).append(seen)
    assert cached["acme"][0] == cached["umbrella"][0] == 0
    assert min(cached["acme"][1], cached["umbrella"][1]) > 0


def test_console_and_metrics_ask_for_their_own_keys_and_know_both_ingresses(keyed: Keyed) -> None:
    turns, ops = bearer(keyed.acme["key"]), bearer(keyed.ops["key"])
    for http in (*keyed.each, keyed.door):
        for path in ("/console/api/sessions", "/metrics", KEYS):
            assert http.get(path).status_code == 401, path
            assert http.get(path, headers=turns).status_code in {401, 403}, path
            assert http.get(path, headers=bearer(ADMIN)).status_code == 200, path
        assert http.get("/console/api/sessions", headers=ops).status_code in {401, 403}

    def processes() -> set[str]:
        figures = keyed.door.get("/metrics", headers=ops).text
        return {
            sample.labels["process"]
            for family in text_string_to_metric_families(figures)
            for sample in family.samples
            if sample.name == "treadle_turns_received_total" and sample.value
        }

    until("figures of both ingresses", lambda: len(processes()) == 2)


def test_rows_of_a_tool_are_a_tenants_own(keyed: Keyed, server: Server) -> None:
    pytest.importorskip("mcp", reason="the extra `tools` is not installed")
    from tests.toolruns.gateway.test_http import body_of  # noqa: PLC0415 - the extra

    with contextlib.closing(sqlite3.connect(server.folder / "numbers.sqlite")) as numbers, numbers:
        numbers.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
        numbers.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(100)])
    server.wait_for_route("/mcp")
    url = server.url("/mcp")

    def call(tool: str, arguments: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
        body, own = body_of("modern", tool, arguments)
        del own["authorization"]
        return keyed.door.post(url, json=body, headers=own | headers)

    mine, theirs = bearer(keyed.acme["key"]), bearer(keyed.umbrella["key"])
    ran = call("numbers", {"max_rows": 32}, mine).text
    handle = ran.split("handle ")[1].split()[0]
    assert '"isError":true' not in call("stream_rows", {"handle": handle}, mine).text
    assert '"isError":true' in call("stream_rows", {"handle": handle}, theirs).text
    for headers in ({}, bearer("sk-of-elsewhere"), bearer(keyed.ops["key"])):
        assert call("stream_rows", {"handle": handle}, headers).status_code in {401, 403}


def test_nothing_that_opens_a_door_and_no_words_are_in_the_clusters_logs(
    keyed: Keyed, server: Server
) -> None:
    secrets = [one["key"].split("-", 2)[2] for one in (keyed.acme, keyed.umbrella, keyed.ops)]
    words = [ADMIN, "nobody-but-this-tenant", *secrets]
    for http in keyed.each:
        wrong = {"model": "nowhere", "messages": [{"role": "user", "content": WORDS}]}
        http.post("/v1/messages", json=wrong, headers=bearer(keyed.acme["key"]))
        http.post("/v1/chat/completions", content=WORDS, headers=bearer(keyed.acme["key"]))
    session = keyed.door.get("/console/api/sessions", headers=bearer(ADMIN)).json()["sessions"][0]
    shown = keyed.door.get(
        f"/console/api/sessions/{session['session']}", headers=bearer(ADMIN)
    ).text
    assert [word for word in words if word in shown] == []
    logs = [server.folder / "log", *(server.folder / "ray").rglob("logs/**/*")]
    read = 0
    for path in logs:
        if path.is_file():
            text = path.read_text(errors="replace")
            read += 1
            assert [word for word in words if word in text] == [], path
    assert read > 10
    assert any("keyed" in Path(path).name for path in logs), "the application's own logs"
    assert json.loads(shown)["turns"]
