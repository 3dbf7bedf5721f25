"""What a key has used, however its turns end; and a key that ends while a connection is open."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.serving.keyed import ADMIN, KEYS, asking, bearer, keyed, make
from tests.serving.server import Server
from tests.serving.waits import until

MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"
SAID = 100
"""Deltas that a client reads before it leaves."""


async def left_early(server: Server, key: dict[str, str]) -> int:
    """The status of a stream whose client leaves in the middle of it."""
    server.says({"text": "word " * 2 * SAID}, hang_after=int(1.5 * SAID))
    body = asking(MESSAGES, stream=True, max_tokens=500)
    async with server.http.stream("POST", MESSAGES, json=body, headers=key) as answer:
        read = 0
        async for line in answer.aiter_lines():
            read += "text_delta" in line
            if read >= SAID:
                break
    await until(lambda: len(server.conductor) == 0)
    return answer.status_code


async def test_who_leaves_before_the_end_has_used_what_was_generated(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = bearer((await make(server, "acme", tokens_per_minute=SAID))["key"])
        assert await left_early(server, key) == 200
        (usage,) = server.outside.allowances.usages().values()
        assert usage.tokens > SAID
        assert await left_early(server, key) == 429
        text = server.metrics.render().decode()
        (told,) = [line for line in text.splitlines() if 'kind="output"' in line]
        assert float(told.split()[-1]) >= SAID
        await asyncio.wait_for(server.board.settled(), 10)
        page = await server.http.get("/console/api/sessions", headers=bearer(ADMIN))
        (row,) = page.json()["sessions"]
        assert row["output"] >= SAID


async def test_a_turn_that_fails_has_used_what_was_generated(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        key = bearer((await make(server, "acme", tokens_per_minute=10**6))["key"])
        server.says({"text": "word " * SAID}, fail_after=50)
        body = asking(MESSAGES, stream=True, max_tokens=500)
        answer = await server.http.post(MESSAGES, json=body, headers=key)
        assert "event: error" in answer.text
        (usage,) = server.outside.allowances.usages().values()
        assert usage.tokens >= 50


async def asked(socket: Any) -> list[str]:
    """The types of the events that a request over the socket is answered with."""
    await socket.send(json.dumps(asking(RESPONSES) | {"type": "response.create"}))
    seen = []
    async with asyncio.timeout(20):
        async for message in socket:
            seen.append(json.loads(message)["type"])
            if seen[-1] in {"response.completed", "error"}:
                break
    return seen


async def test_a_revoked_key_is_out_on_an_open_socket_too(monkeypatch: Any) -> None:
    async with keyed(monkeypatch) as server:
        made = await make(server, "acme")
        url = server.url.replace("http", "ws") + RESPONSES
        async with connect(url, additional_headers=bearer(made["key"]), proxy=None) as socket:
            assert (await asked(socket))[-1] == "response.completed"
            await server.http.delete(f"{KEYS}/{made['id']}", headers=bearer(ADMIN))
            assert await asked(socket) == ["error"]
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008


async def test_what_cannot_be_audited_is_refused_in_its_own_shape(
    monkeypatch: Any, tmp_path: Path
) -> None:
    file = tmp_path / "not made yet" / "audit.jsonl"
    async with keyed(monkeypatch, access={"audit_file": str(file)}) as server:
        assert (await server.http.post(MESSAGES, json=asking(MESSAGES))).status_code == 401
        assert json.loads(file.read_text())["event"] == "refused"
        file.unlink()
        file.parent.rmdir()
        answer = await server.http.post(MESSAGES, json=asking(MESSAGES))
        assert answer.status_code == 401
        assert answer.json()["error"]["type"] == "authentication_error"
        assert (await make(server, "acme"))["key"]
