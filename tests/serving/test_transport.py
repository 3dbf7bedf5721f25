"""What surrounds a turn on the wire: ids, codings, limits, origins, noise, and clients that leave."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import brotli
import httpx
import pytest
import zstandard

from tests.serving.asks import ASKS, PATHS, ask
from tests.serving.server import Server, serving, settings
from tests.serving.waits import until

EACH = pytest.mark.parametrize("api", PATHS)
CODED = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def raw(api: str, **fields: Any) -> bytes:
    return json.dumps(ask(api, **fields)).encode()


@EACH
@pytest.mark.parametrize("coding", CODED)
async def test_a_coded_body_is_a_body(server: Server, api: str, coding: str) -> None:
    headers = {"content-encoding": coding, "content-type": "application/json"}
    answer = await server.http.post(PATHS[api], content=CODED[coding](raw(api)), headers=headers)
    assert answer.status_code == 200, answer.text
    assert (await server.http.post(PATHS[api], content=raw(api))).status_code == 200
    coded, plain = server.engine.jobs
    assert coded.prompt == plain.prompt


@EACH
async def test_every_response_names_its_request(server: Server, api: str) -> None:
    good = await server.http.post(PATHS[api], json=ask(api))
    bad = await server.http.post(PATHS[api], json={})
    page = await server.http.get("/v1/models")
    for answer in (good, bad, page):
        assert answer.headers["request-id"] == answer.headers["x-request-id"]
        assert len(answer.headers.get_list("x-request-id")) == 1
    if api == "messages":
        assert bad.json()["request_id"] == bad.headers["request-id"]


@EACH
async def test_who_named_the_request_before_is_not_contradicted(server: Server, api: str) -> None:
    """Serve puts its id into the request and into the response: saying it again would double it."""
    headers = {"x-request-id": "from-serve"}
    answer = await server.http.post(PATHS[api], json=ask(api), headers=headers)
    assert answer.headers["request-id"] == "from-serve"
    assert "x-request-id" not in answer.headers
    again = await server.http.post(PATHS[api], json=ask(api), headers=headers)
    assert answer.json()["id"] != again.json()["id"]  # the turn's own ids are never a client's


@EACH
async def test_a_body_over_the_limit_is_413(api: str) -> None:
    chosen = settings(ingress={"max_body_bytes": 2000})
    async with serving(chosen) as server:
        long = ask(api, metadata={"pad": "x" * 3000})
        known = await server.http.post(PATHS[api], json=long)
        unknown = await server.http.post(PATHS[api], content=chunks(json.dumps(long).encode()))
        bomb = gzip.compress(json.dumps(ask(api, metadata={"pad": "x" * 200_000})).encode())
        coded = await server.http.post(
            PATHS[api], content=bomb, headers={"content-encoding": "gzip"}
        )
        for answer in (known, unknown, coded):
            assert answer.status_code == 413
            assert error_of(answer)["type"] in ("request_too_large", "invalid_request_error")
        assert (await server.http.post(PATHS[api], json=ask(api))).status_code == 200


async def chunks(body: bytes) -> Any:
    for at in range(0, len(body), 500):
        yield body[at : at + 500]


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The error of either envelope."""
    body = answer.json()
    error: dict[str, Any] = body["error"]
    if "request_id" in body:
        assert set(body) == {"type", "error", "request_id"}
        assert set(error) == {"type", "message"}
    else:
        assert set(body) == {"error"}
        assert set(error) == {"message", "type", "param", "code"}
    return error


async def test_what_nobody_acts_on_is_said_and_counted(server: Server) -> None:
    body = ask("messages", frobnicate=1, tools=[{"type": "web_search_20250305", "name": "web"}])
    body["messages"][0]["content"] = [{"type": "hologram", "x": 1}, {"type": "text", "text": "hi"}]
    answer = await server.http.post(PATHS["messages"], json=body)
    said = answer.headers["x-treadle-ignored"].split(", ")
    assert said == ["frobnicate", "tools.0:web_search_20250305", "messages.0:hologram"]
    figures = (await server.http.get("/metrics")).text
    for part in ("field", "tools", "messages"):
        assert f'treadle_ignored_total{{api="messages",part="{part}"}} 1.0' in figures
    assert (
        "x-treadle-ignored"
        not in (await server.http.post(PATHS["chat"], json=ASKS["chat"])).headers
    )


async def test_the_list_of_what_is_ignored_is_bounded_and_cannot_break_the_header(
    server: Server,
) -> None:
    strange = {f"field-{n}-{'y' * 40}": n for n in range(200)} | {"a,b\r\nset-cookie: x": 1}
    answer = await server.http.post(PATHS["chat"], json=ask("chat", **strange))
    assert answer.status_code == 200
    said = answer.headers["x-treadle-ignored"]
    assert len(said) < 1100
    assert said.split(", ")[0] == "a?b??set-cookie: x"
    assert said.split(", ")[-1].startswith("+")
    assert "set-cookie" not in answer.headers


async def test_no_page_of_another_origin_may_call_by_default(server: Server) -> None:
    headers = {"origin": "https://app.example", "access-control-request-method": "POST"}
    asked = await server.http.options(PATHS["chat"], headers=headers)
    assert asked.status_code == 405
    answer = await server.http.post(PATHS["chat"], json=ask("chat"), headers=headers)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_pages_of_named_origins_may_call() -> None:
    async with serving(settings(ingress={"cors_origins": ["https://app.example"]})) as server:
        mine = {"origin": "https://app.example", "access-control-request-method": "POST"}
        asked = await server.http.options(PATHS["chat"], headers=mine)
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "https://app.example"
        assert "POST" in asked.headers["access-control-allow-methods"]
        for path in (PATHS["chat"], "/v1/models"):
            how = "POST" if path == PATHS["chat"] else "GET"
            body = ask("chat") if how == "POST" else None
            answer = await server.http.request(how, path, json=body, headers=mine)
            assert answer.headers["access-control-allow-origin"] == "https://app.example"
            assert "request-id" in answer.headers["access-control-expose-headers"]
        other = await server.http.options(PATHS["chat"], headers=mine | {"origin": "https://evil"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/", 200),
        ("GET", "/", 200),
        ("POST", "/api/event_logging/batch", 204),
        ("POST", "/api/event_logging/v2/batch", 204),
        ("POST", "/api/claude_cli_feedback", 404),
        ("GET", "/api/claude_cli/bootstrap", 404),
        ("GET", "/v1/messages", 405),
        ("POST", "/v1/messages/batches", 404),
        ("GET", "/v1/responses", 405),
        ("DELETE", "/v1/chat/completions", 405),
    ],
)
async def test_noise_is_answered(server: Server, method: str, path: str, status: int) -> None:
    answer = await server.http.request(method, path, content=b"{}" if method == "POST" else None)
    assert answer.status_code == status
    if status >= 400 and method != "HEAD":
        error_of(answer)
        assert ("request_id" in answer.json()) == ("messages" in path)
    assert not server.engine.jobs


async def test_an_upgrade_without_a_socket_server_is_426(server: Server) -> None:
    """Where uvicorn has no WebSocket library, the request arrives as a GET."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": PATHS["responses"],
        "headers": [(b"connection", b"Upgrade"), (b"upgrade", b"WebSocket")],
    }
    await server.outside.app(scope, None, send)
    assert sent[0]["status"] == 426
    assert json.loads(sent[1]["body"])["error"]["type"] == "invalid_request_error"


async def test_a_defect_of_ours_is_an_error_in_the_apis_shape(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(server.ingress, "begin", broken)
    monkeypatch.setattr(server.ingress.names, "cards", broken)
    for api, path in PATHS.items():
        answer = await server.http.post(path, json=ask(api))
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert error_of(answer)["type"] in ("api_error", "server_error")
    page = await server.http.get("/v1/models")
    assert page.status_code == 500
    assert "secret" not in page.text
    error_of(page)


@EACH
async def test_a_client_that_leaves_ends_the_engines_work(server: Server, api: str) -> None:
    server.says({"endless": "word "}, tokens={"step_ms": 5})
    async with server.http.stream("POST", PATHS[api], json=ask(api, stream=True)) as answer:
        async for _ in answer.aiter_bytes():
            break
    await until(lambda: server.engine.aborts)
    await until(lambda: not server.replica.inner.open_turns and not server.replica.lanes.parsing)
    assert len(server.conductor) == 0
    assert server.engine.stats().running == 0


@EACH
async def test_a_client_that_leaves_before_the_first_token_does_too(
    server: Server, api: str
) -> None:
    server.says({"text": "late"}, tokens={"first_after_ms": 60_000})
    for stream in (True, False):
        with pytest.raises(httpx.TimeoutException):
            await server.http.post(PATHS[api], json=ask(api, stream=stream), timeout=0.3)
        turn = server.engine.jobs[-1].turn
        await until(lambda turn=turn: turn in server.engine.aborts)
    await until(lambda: len(server.conductor) == 0)


@EACH
async def test_closing_right_after_the_last_event_is_no_cancel(server: Server, api: str) -> None:
    last = {"messages": b"message_stop", "chat": b"[DONE]", "responses": b"response.completed"}
    server.says({"text": "one two three"})
    async with server.http.stream("POST", PATHS[api], json=ask(api, stream=True)) as answer:
        seen = b""
        async for piece in answer.aiter_raw():
            seen += piece
            if last[api] in seen:
                break  # Codex closes here, before the end of the body
    await until(lambda: not server.replica.inner.open_turns)
    assert not server.engine.aborts
    figures = (await server.http.get("/metrics")).text
    assert f'treadle_turns_ended_total{{api="{api}",model="lab-model",stop="end"}} 1.0' in figures
    assert 'stop="cancelled"' not in figures


async def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    server.says({"text": "{last_user}"})
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for word in ("first", "second", "third"):
        body = json.dumps(ask("chat") | {"messages": [{"role": "user", "content": word}]}).encode()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )
    seen = b""
    async with asyncio.timeout(20):
        while seen.count(b'"finish_reason"') < 3:
            piece = await reader.read(65536)
            assert piece, seen
            seen += piece
    said = [seen.index(f'"content":"{word}"'.encode()) for word in ("first", "second", "third")]
    assert said == sorted(said)
    writer.close()
