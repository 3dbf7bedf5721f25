"""The table of attempts: who is let in where, and in which shape everybody else is refused."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from access.keys import owner_of
from deployments.access import admins
from tests.serving.keyed import ADMIN, KEYS, asking, bearer, keyed, make, refused
from tests.serving.server import serving, settings
from tests.serving.waits import until

APIS = ["/v1/messages", "/v1/chat/completions", "/v1/responses"]
UNAUTHORISED = {"/v1/messages": "authentication_error"}
FORBIDDEN = {"/v1/messages": "permission_error"}
LIMITED = {"/v1/messages": "rate_limit_error"}


def flipped(key: str) -> str:
    return key[:-1] + ("A" if key[-1] != "A" else "B")


async def test_a_key_lets_in_by_either_header_and_on_every_api(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = (await make(server, "acme"))["key"]
        for api in APIS:
            for headers in (bearer(key), {"x-api-key": key}, {"authorization": f"bearer {key}"}):
                answer = await server.http.post(api, json=asking(api), headers=headers)
                assert answer.status_code == 200, answer.text
        assert (await server.http.get("/health")).status_code == 200


@pytest.mark.parametrize("api", APIS)
async def test_no_key_a_wrong_one_and_a_revoked_one_are_refused_alike(
    monkeypatch: Any, api: str
) -> None:
    async with keyed(monkeypatch) as server:
        made = await make(server, "acme")
        gone = await make(server, "acme")
        assert (
            await server.http.delete(f"{KEYS}/{gone['id']}", headers=bearer(ADMIN))
        ).status_code == 200
        old = await make(server, "acme", days=1e-9)
        other_id = made["key"].replace(made["id"], "0" * 12)
        shown: list[dict[str, str]] = [
            {},
            {"authorization": "Bearer"},
            bearer("none"),
            {"x-api-key": "sk-1"},
        ]
        wrong = (flipped(made["key"]), other_id, gone["key"], old["key"])
        shown += [bearer(key) for key in wrong]
        said = set()
        for number, headers in enumerate(shown):
            body = asking(api, stream=number % 2 == 0)
            answer = await server.http.post(api, json=body, headers=headers)
            assert answer.status_code == 401, headers
            assert refused(answer, api) == UNAUTHORISED.get(api, "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.headers["request-id"]
            said.add(json.dumps(answer.json()["error"]["message"]))
        assert len(said) == 2  # no key at all is told apart, nothing else is


CLOSED = [
    "/v1/models",
    "/v1/models/lab-model",
    "/v1/responses/resp_1",
    "/v1/conversations/conv_1",
    "/v1/treadle/turns/x/prefix",
    "/metrics",
    "/console/api/sessions",
    "/openapi.json",
    "/v1/nowhere",
    KEYS,
]


async def test_nothing_but_health_is_told_to_who_shows_no_key(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        for path in CLOSED:
            answer = await server.http.get(path)
            assert answer.status_code == 401, path
            assert refused(answer, path) == "invalid_api_key"
            anthropic = await server.http.get(path, headers={"anthropic-version": "2023-06-01"})
            assert anthropic.json()["error"]["type"] == "authentication_error"


async def test_the_admins_surface_takes_the_admins_key_alone(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = (await make(server, "acme"))["key"]
        for path in (KEYS, "/metrics", "/console/api/sessions"):
            answer = await server.http.get(path, headers=bearer(key))
            assert answer.status_code in {401, 403}, path
            allowed = await server.http.get(path, headers=bearer(ADMIN))
            assert allowed.status_code in {200, 404}, path  # the console may not be there
            wrong = await server.http.get(path, headers=bearer(ADMIN + "x"))
            assert wrong.status_code == 401, path


async def test_a_scope_opens_one_place(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = (await make(server, "ops", scopes=["metrics"]))["key"]
        assert (await server.http.get("/metrics", headers=bearer(key))).status_code == 200
        for api in APIS:
            answer = await server.http.post(api, json=asking(api), headers=bearer(key))
            assert answer.status_code == 403
            assert refused(answer, api) == FORBIDDEN.get(api, "insufficient_permissions")


async def test_a_key_that_cannot_be_is_refused(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        for wanted in ({}, {"tenant": ""}, {"tenant": "t", "scopes": ["admin"]}, []):
            answer = await server.http.post(KEYS, json=wanted, headers=bearer(ADMIN))
            assert answer.status_code == 400, wanted
        assert (await server.http.get(KEYS, headers=bearer(ADMIN))).json() == {"keys": []}


async def test_keys_are_listed_without_anything_that_opens(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        made = await make(server, "acme", name="ci", requests_per_minute=5)
        listed = await server.http.get(KEYS, headers=bearer(ADMIN))
        assert made["key"] not in listed.text
        assert "digest" not in listed.text
        (one,) = listed.json()["keys"]
        assert (one["tenant"], one["name"]) == ("acme", "ci")
        assert one["allowance"] == {"requests_per_minute": 5}
        unknown = await server.http.delete(f"{KEYS}/none", headers=bearer(ADMIN))
        assert unknown.status_code == 404


async def test_another_tenants_things_are_not_there(monkeypatch: Any) -> None:
    """Responses, conversations, the ledger's prefixes and the doctor: not found, never forbidden."""
    async with keyed(monkeypatch) as server:
        mine = bearer((await make(server, "acme"))["key"])
        again = bearer((await make(server, "acme"))["key"])
        theirs = bearer((await make(server, "umbrella"))["key"])
        made = await server.http.post(
            "/v1/responses", json=asking("/v1/responses", store=True), headers=mine
        )
        name = made.json()["id"]
        talk = await server.http.post("/v1/conversations", json={}, headers=mine)
        places = [
            f"/v1/responses/{name}",
            f"/v1/responses/{name}/input_items",
            f"/v1/conversations/{talk.json()['id']}",
        ]
        for place in places:
            assert (await server.http.get(place, headers=again)).status_code == 200, place
            assert (await server.http.get(place, headers=theirs)).status_code == 404, place
        on = asking("/v1/responses", previous_response_id=name)
        answer = await server.http.post("/v1/responses", json=on, headers=theirs)
        assert answer.json()["error"]["code"] == "previous_response_not_found"
        prefix = await server.http.get(f"/v1/treadle/turns/{name}/prefix", headers=theirs)
        nowhere = await server.http.get("/v1/treadle/turns/resp_0/prefix", headers=theirs)
        assert prefix.status_code == nowhere.status_code == 404
        assert (await server.http.delete(places[0], headers=theirs)).status_code == 404
        assert (await server.http.get(places[0], headers=mine)).status_code == 200


async def test_a_session_is_a_tenants_own(monkeypatch: Any) -> None:
    """Two tenants whose harnesses chose one name: neither sees the other's hints and turns."""
    async with keyed(monkeypatch) as server:
        keys = [await make(server, tenant) for tenant in ("acme", "umbrella")]
        for key in keys:
            headers = bearer(key["key"]) | {"x-claude-code-session-id": "same"}
            await server.http.post("/v1/messages", json=asking("/v1/messages"), headers=headers)
        await server.keeper.settled()
        for tenant in ("acme", "umbrella"):
            session = await server.store.session(owner_of(tenant), "same")
            assert session is not None
            assert session.turns == 1
        assert await server.store.session("", "same") is None


@pytest.mark.parametrize(("shared", "warm"), [(False, False), (True, True)])
async def test_prefixes_are_not_shared_across_tenants_unless_they_may(
    monkeypatch: Any, shared: bool, warm: bool
) -> None:
    """Time and usage would tell one tenant what another has asked."""
    async with keyed(monkeypatch, access={"shared_prefixes": shared}) as server:
        words = asking("/v1/messages", system="A long and steady prompt. " * 60)

        async def cached(tenant: str) -> int:
            key = (await make(server, tenant))["key"]
            answer = await server.http.post("/v1/messages", json=words, headers=bearer(key))
            return int(answer.json()["usage"].get("cache_read_input_tokens") or 0)

        assert await cached("acme") == 0
        assert (await cached("umbrella") > 0) is warm
        assert await cached("acme") > 0


async def test_a_key_uses_its_models_alone(monkeypatch: Any) -> None:
    aliases = [{"name": "claude-x", "model": "lab-model"}]
    async with keyed(monkeypatch, aliases=aliases) as server:
        none = bearer((await make(server, "acme", models=["other*"]))["key"])
        alias = bearer((await make(server, "acme", models=["claude-*"]))["key"])
        for api in APIS:
            answer = await server.http.post(api, json=asking(api), headers=none)
            assert answer.status_code == 403
            assert refused(answer, api) == FORBIDDEN.get(api, "insufficient_permissions")
            by_alias = asking(api) | {"model": "claude-x"}
            assert (await server.http.post(api, json=by_alias, headers=alias)).status_code == 200
        count = "/v1/messages/count_tokens"
        body = {"model": "lab-model", "messages": [{"role": "user", "content": "x"}]}
        assert (await server.http.post(count, json=body, headers=none)).status_code == 403
        assert (await server.http.get("/v1/models", headers=none)).json()["data"] == []
        listed = (await server.http.get("/v1/models", headers=alias)).json()["data"]
        assert [card["id"] for card in listed] == ["claude-x"]
        assert (await server.http.get("/v1/models/lab-model", headers=none)).status_code == 404


@pytest.mark.parametrize("limit", ["requests_per_minute", "tokens_per_minute"])
async def test_who_has_used_what_he_may_is_told_when_to_come_back(
    monkeypatch: Any, limit: str
) -> None:
    async with keyed(monkeypatch) as server:
        other = bearer((await make(server, "acme"))["key"])
        for api in APIS:
            key = bearer((await make(server, "acme", **{limit: 1}))["key"])
            assert (await server.http.post(api, json=asking(api), headers=key)).status_code == 200
            answer = await server.http.post(api, json=asking(api), headers=key)
            assert answer.status_code == 429
            assert refused(answer, api) == LIMITED.get(api, "rate_limit_exceeded")
            assert 1 <= int(answer.headers["retry-after"]) <= 120
            assert (await server.http.post(api, json=asking(api), headers=other)).status_code == 200


async def test_turns_at_a_time_are_let_go_however_they_end(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = bearer((await make(server, "acme", concurrent_turns=1))["key"])
        api = "/v1/messages"
        server.says({"text": "Hello. " * 20}, hang_after=2)
        running = asyncio.ensure_future(
            server.http.post(api, json=asking(api, stream=True), headers=key)
        )
        allowances = server.outside.allowances
        await until(allowances.usages)
        assert (await server.http.post(api, json=asking(api), headers=key)).status_code == 429
        running.cancel()
        await until(lambda: not any(usage.turns for usage in allowances.usages().values()))
        server.says({"text": "Hello."})
        for wrong in ({"max_tokens": -1}, {"messages": []}):
            await server.http.post(api, json=asking(api, **wrong), headers=key)
        assert (await server.http.post(api, json=asking(api), headers=key)).status_code == 200


async def test_turns_are_no_more_urgent_than_their_key_may_be(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = bearer((await make(server, "acme", most_priority=2, most_tier=0))["key"])
        free = bearer((await make(server, "acme"))["key"])
        for api in APIS:
            for who, priority, shown in ((key, -2, True), (free, -(1 << 32) - 9, False)):
                hints = {"agent_hints": {"priority": 9, "tier": 1}}
                answer = await server.http.post(api, json=asking(api, nvext=hints), headers=who)
                assert server.engine.jobs[-1].priority == priority
                ignored = answer.headers.get("x-treadle-ignored", "")
                assert ("agent_hints.priority, agent_hints.tier" in ignored) == shown


async def test_a_session_lends_no_urgency_that_its_key_may_not_have(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        low = bearer((await make(server, "acme", most_priority=2, most_tier=0))["key"])
        free = bearer((await make(server, "acme"))["key"])
        session, api = {"x-treadle-session": "s1"}, "/v1/chat/completions"
        hints = {"agent_hints": {"priority": 9, "tier": 1}}
        await server.http.post(api, json=asking(api, nvext=hints), headers=free | session)
        await server.http.post(api, json=asking(api), headers=low | session)
        assert server.engine.jobs[-1].priority == -2


@pytest.mark.parametrize("bound", [10**30, 2**63, 11, -11])
async def test_a_bound_that_no_turn_can_have_is_refused(monkeypatch: Any, bound: int) -> None:
    async with keyed(monkeypatch) as server:
        body = {"tenant": "acme", "most_tier": bound}
        answer = await server.http.post(KEYS, json=body, headers=bearer(ADMIN))
        assert answer.status_code == 400


async def test_a_bound_below_zero_names_no_hint_that_nobody_gave(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        low = bearer((await make(server, "acme", most_priority=-5))["key"])
        api = "/v1/chat/completions"
        answer = await server.http.post(api, json=asking(api), headers=low)
        assert server.engine.jobs[-1].priority == 5
        assert "agent_hints" not in answer.headers.get("x-treadle-ignored", "")


async def test_a_socket_needs_a_key_too(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = (await make(server, "acme"))["key"]
        url = server.url.replace("http", "ws") + "/v1/responses"
        for headers in ({}, bearer(flipped(key))):
            with pytest.raises(InvalidStatus) as raised:
                async with connect(url, additional_headers=headers, proxy=None):
                    pass
            assert raised.value.response.status_code in {401, 403}
        async with connect(url, additional_headers=bearer(key), proxy=None) as socket:
            body = asking("/v1/responses") | {"type": "response.create"}
            await socket.send(json.dumps(body))
            async with asyncio.timeout(20):
                assert json.loads(await socket.recv())["type"] == "response.created"


async def test_headers_have_a_limit(monkeypatch: Any) -> None:
    async with keyed(monkeypatch, access={"max_header_bytes": 1024}) as server:
        answer = await server.http.get("/v1/models", headers={"x-long": "x" * 2000})
        assert answer.status_code == 431


async def test_every_response_has_the_security_headers(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = bearer((await make(server, "acme"))["key"])
        answers = [
            await server.http.post("/v1/messages", json=asking("/v1/messages"), headers=key),
            await server.http.get("/v1/models", headers=key),
            await server.http.get("/v1/models"),
            await server.http.get("/health"),
        ]
        for answer in answers:
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_nothing_that_opens_a_door_is_written_down(
    monkeypatch: Any, tmp_path: Path, capsys: Any, caplog: Any
) -> None:
    """Logs, the audit log, what the console sees and what is stored: no key, no words."""
    caplog.set_level(logging.DEBUG)
    for client in ("httpx", "httpcore"):  # the test's own, which may say what it likes
        caplog.set_level(logging.WARNING, client)
    log = tmp_path / "audit.log"
    words = "the-words-of-a-person"
    async with keyed(monkeypatch, access={"audit_file": str(log)}) as server:
        made = await make(server, "acme")
        gone = await make(server, "acme")
        await server.http.delete(f"{KEYS}/{gone['id']}", headers=bearer(ADMIN))
        shown = [made["key"], gone["key"], flipped(made["key"]), "sk-ant-of-elsewhere", ADMIN + "x"]
        for key in shown:
            for headers in (bearer(key), {"x-api-key": key}):
                for api in APIS:
                    body = asking(api)
                    body["messages" if "messages" in body else "input"] = [
                        {"role": "user", "content": words}
                    ]
                    await server.http.post(f"{api}?key={key}", json=body, headers=headers)
        secrets = [key.split("-", 2)[2] for key in shown] + [ADMIN, words]
        stored = repr(server.store.__dict__)
        said = capsys.readouterr()
        audited = log.read_text()
        written = audited + said.out + said.err + caplog.text
        assert [secret for secret in secrets if secret in written] == []
        assert [secret for secret in secrets[:2] if secret in stored] == []
    lines = [json.loads(line) for line in audited.splitlines()]
    events = [line["event"] for line in lines]
    assert events.count("key_added") == 2
    assert events.count("key_revoked") == 1
    refusals = [line for line in lines if line["event"] == "refused"]
    assert {line["kind"] for line in refusals} == {"authentication"}
    assert {line["key"] for line in refusals} == {"", made["id"], gone["id"]}
    assert all(line["request"] and line["path"].startswith("/v1/") for line in refusals)
    assert log.stat().st_mode & 0o077 == 0


async def test_without_keys_everything_is_as_open_as_before_but_the_admins_surface() -> None:
    async with serving() as server:
        server.says({"text": "Hello."})
        for headers in ({}, bearer("anything")):
            answer = await server.http.post(
                "/v1/messages", json=asking("/v1/messages"), headers=headers
            )
            assert answer.status_code == 200
        closed = await server.http.get(KEYS)
        assert closed.status_code == 403
        assert "TREADLE_ADMIN_KEY" in closed.json()["error"]["message"]


def test_an_admin_key_that_can_be_guessed_is_refused(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("TREADLE_ADMIN_KEY", "short")
    with pytest.raises(ValueError, match="openssl rand"):
        admins(settings().access)
    monkeypatch.delenv("TREADLE_ADMIN_KEY")
    file = tmp_path / "admin"
    file.write_text("one-that-is-long-enough\nanother-that-is-long-enough\n")
    assert len(admins(settings(access={"admin_file": str(file)}).access)) == 2
