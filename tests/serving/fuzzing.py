"""Sends mutated requests to the edge and judges what comes back."""

from __future__ import annotations

import asyncio
import json
import time
from random import Random
from typing import Any

from msgspec import Struct

from tests.protocols import apis
from tests.serving.asks import PATHS
from tests.serving.mutate import Asked, mutated, seeds
from tests.serving.server import Server

OPENAI = {"message", "type", "param", "code"}
ANTHROPIC = {"type", "message"}
DISPATCH = ("tool_call_dispatch", "reasoning_dispatch")


class Answer(Struct):
    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float


class Tally(Struct):
    """What a run has seen: requests by status, and the CPU seconds of the slowest refusal."""

    statuses: dict[int, int]
    slowest: float = 0.0
    slowest_body: bytes = b""


class FindingError(AssertionError):
    """An answer that must not be, and the request that brought it about."""


async def ask(server: Server, api: str, asked: Asked) -> Answer:
    """The answer of the edge's application, without an HTTP server between."""
    sent: list[dict[str, Any]] = []
    given = [{"type": "http.request", "body": asked.body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return given.pop(0) if given else await _never()

    async def send(message: Any) -> None:
        sent.append(dict(message))

    headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in asked.headers.items()]
    scope = {"type": "http", "method": "POST", "path": PATHS[api], "headers": headers}
    began = time.process_time()
    await server.outside.app(scope, receive, send)
    took = time.process_time() - began
    start, *rest = sent
    assert start["type"] == "http.response.start"
    assert not rest[-1].get("more_body", False)
    said = {k.decode().lower(): v.decode("latin-1") for k, v in start["headers"]}
    return Answer(start["status"], said, b"".join(m.get("body", b"") for m in rest), took)


async def _never() -> Any:
    return await asyncio.get_running_loop().create_future()


def judge(api: str, answer: Answer) -> None:
    """Raise AssertionError for an answer that no request may get."""
    assert answer.headers["request-id"]
    if answer.status == 200:
        if answer.headers["content-type"].startswith("text/event-stream"):
            assert apis.problems(api, answer.body, DISPATCH) == []
        else:
            json.loads(answer.body)
        return
    assert answer.status in (400, 404, 413, 429, 529), answer.status
    body = json.loads(answer.body)
    assert isinstance(body["error"]["message"], str)
    assert body["error"]["message"]
    if api == "messages":
        assert set(body) == {"type", "error", "request_id"}
        assert set(body["error"]) == ANTHROPIC
    else:
        assert set(body) == {"error"}
        assert set(body["error"]) == OPENAI


async def run(server: Server, api: str, *, count: int, seed: int) -> Tally:
    """Send `count` mutated requests; raises FindingError at the first wrong answer, or where the
    server says that something in it is broken.
    """
    random, known, tally = Random(seed), seeds(api), Tally({})
    defects: list[Exception] = []
    server.ingress.defect = lambda _, error: defects.append(error)  # type: ignore[method-assign]
    for number in range(count):
        asked = mutated(random, known)
        try:
            answer = await ask(server, api, asked)
            judge(api, answer)
            assert not defects, defects
        except Exception as error:
            what = (
                f"{api} #{number}: {error!r}\nheaders {asked.headers}\nbody {asked.body[:3000]!r}"
            )
            raise FindingError(what) from error
        server.engine.forget()
        tally.statuses[answer.status] = tally.statuses.get(answer.status, 0) + 1
        if answer.status != 200 and answer.seconds > tally.slowest:
            # Once more: a collection of garbage may have come in between.
            seconds = min(answer.seconds, (await ask(server, api, asked)).seconds)
            if seconds > tally.slowest:
                tally.slowest, tally.slowest_body = seconds, asked.body
    return tally
