"""A silent stream is kept alive by real events of its API, and a silent answer waits for ever."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.protocols import apis
from tests.serving.asks import PATHS, ask
from tests.serving.server import serving, settings

EACH = pytest.mark.parametrize("api", PATHS)
OFTEN = {"ingress": {"keepalive_s": 0.05}}
SAID = {"messages": "ping", "responses": "response.in_progress", "chat": "chat.completion.chunk"}


def kind(api: str, event: Any) -> str:
    return str(event["object"] if api == "chat" else event["type"])


@EACH
async def test_before_the_first_token(api: str) -> None:
    async with serving(settings(**OFTEN)) as server:
        server.says({"text": "At last."}, tokens={"first_after_ms": 600})
        answer = await server.http.post(PATHS[api], json=ask(api, stream=True))
        events = [data for _, data in apis.parse(answer.content) if isinstance(data, dict)]
        early = events[: next(n for n, one in enumerate(events) if "At" in str(one))]
        assert len([one for one in early if kind(api, one) == SAID[api]]) >= 3
        assert apis.problems(api, answer.content) == []
        assert b"\n:" not in b"\n" + answer.content  # comments would not reset a client's clock


@EACH
async def test_between_two_tokens(api: str) -> None:
    async with serving(settings(**OFTEN)) as server:
        server.says({"deltas": ["one ", "two ", "three"]}, tokens={"step_ms": 900})
        answer = await server.http.post(PATHS[api], json=ask(api, stream=True))
        events = [data for _, data in apis.parse(answer.content) if isinstance(data, dict)]
        later = events[next(n for n, one in enumerate(events) if '"one"' in json.dumps(one)) + 1 :]
        assert [one for one in later if kind(api, one) == SAID[api]]
        assert apis.problems(api, answer.content) == []


@EACH
async def test_headers_leave_before_the_first_token(api: str) -> None:
    async with serving(settings(**OFTEN)) as server:
        server.says({"text": "never"}, tokens={"first_after_ms": 60_000})
        async with asyncio.timeout(10):
            sent = server.http.stream("POST", PATHS[api], json=ask(api, stream=True))
            async with sent as answer:
                assert answer.status_code == 200
                assert answer.headers["content-type"].startswith("text/event-stream")


@EACH
async def test_an_answer_that_is_not_streamed_waits_as_long_as_it_takes(api: str) -> None:
    """Nothing in the house bounds it: here it outlasts thirty keep-alives."""
    async with serving(settings(**OFTEN)) as server:
        server.says({"text": "At last."}, tokens={"first_after_ms": 1500})
        async with httpx.AsyncClient(base_url=server.url, timeout=None, verify=False) as http:  # noqa: S113, S501 - loopback, bounded by the test
            answer = await http.post(PATHS[api], json=ask(api))
        assert answer.status_code == 200
        assert "At last." in answer.text
