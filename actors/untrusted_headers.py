"""Request headers that steer Ray Serve itself and are not a client's to set: removed.

`x-request-disconnect-disabled` would keep an engine at work for a client that left, and
`x-request-timeout-seconds` would lift the operator's own limit. Serve reads them before any
application does, so they are taken away in front of it (`deployments.http_middlewares`).
"""

from __future__ import annotations

from typing import Any

UNTRUSTED = frozenset({b"x-request-disconnect-disabled", b"x-request-timeout-seconds"})


class WithoutUntrustedHeaders:
    """An ASGI application in front of another. Costs a request one pass over its headers."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if "headers" in scope:
            kept = [(name, value) for name, value in scope["headers"] if name not in UNTRUSTED]
            scope = {**scope, "headers": kept}
        await self._app(scope, receive, send)
