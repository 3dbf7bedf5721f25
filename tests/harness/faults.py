"""What can stand in front of a harness's request: a gateway's answer, a full engine, a failing one.

`told` is what others say. The rest is our own: the request goes all the way.
"""

from __future__ import annotations

import json
from typing import Any

from tests.harness.watched import Fault, Forward, Watched
from tests.serving.server import MODEL
from tests.serving.waits import until

FOR_EVER = "go on for ever"
ENDLESS = {
    "when": {"user_contains": FOR_EVER},
    "reply": [{"endless": "and on "}],
    "tokens": {"step_ms": 20},
}
"""The rule of a turn that takes a place of an engine until its client leaves."""


def told(status: int, kind: str, **headers: str) -> Fault:
    """A gateway's refusal, before our server hears of the request."""

    async def fault(_: Watched, send: Any, __: Forward) -> None:
        error = {"type": kind, "message": "one moment, please"}
        body = json.dumps({"type": "error", "error": error}).encode()
        said = {"content-type": "application/json", "content-length": str(len(body)), **headers}
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in said.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})

    return fault


async def full(watched: Watched, _: Any, forward: Forward) -> None:
    """Somebody else has the engine's only place: `max_turns` must be 1, and ENDLESS a rule."""
    server = watched.server
    body = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": FOR_EVER}]}
    async with server.http.stream("POST", "/v1/chat/completions", json=body) as theirs:
        said = theirs.aiter_bytes()  # closed with its last reference, and the response with it
        await anext(said)
        await forward()
    await until(lambda: server.engine.stats().running == 0, within=30)


def failing(after: int) -> Fault:
    """The engine fails the turn after so many tokens."""

    async def fault(watched: Watched, _: Any, forward: Forward) -> None:
        engine = watched.server.engine
        engine.says = {"reply": [{"lorem": after + 10}], "fail_after": after}
        try:
            await forward()
        finally:
            engine.says = None

    return fault
