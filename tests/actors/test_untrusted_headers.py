"""Headers by which a client could steer Serve never reach it."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.middleware import Middleware

from actors.untrusted_headers import WithoutUntrustedHeaders
from deployments.http_middlewares import middlewares

SENT = [
    (b"host", b"x"),
    (b"x-request-disconnect-disabled", b"?1"),
    (b"x-request-timeout-seconds", b"0"),
    (b"x-request-id", b"a"),
]


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_they_are_taken_away_and_nothing_else_is(kind: str) -> None:
    seen: list[dict[str, Any]] = []

    async def app(scope: dict[str, Any], *_: Any) -> None:
        seen.append(scope)

    scope = {"type": kind, "path": "/", "headers": list(SENT)}
    await WithoutUntrustedHeaders(app)(scope, None, None)
    assert seen == [{"type": kind, "path": "/", "headers": [SENT[0], SENT[3]]}]
    assert scope["headers"] == SENT


async def test_a_scope_without_headers_passes() -> None:
    seen: list[Any] = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append(scope)

    await WithoutUntrustedHeaders(app)({"type": "lifespan"}, None, None)
    assert seen == [{"type": "lifespan"}]


def test_serve_is_given_it() -> None:
    given = middlewares()
    assert all(isinstance(one, Middleware) for one in given)
    assert WithoutUntrustedHeaders in {one.cls for one in given}
