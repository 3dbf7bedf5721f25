"""What stands in front of Ray Serve's own HTTP handling.

Serve asks for it by the environment variable `RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH`
(`scripts/serve.env`), in every process that listens.
"""

from __future__ import annotations

from starlette.middleware import Middleware

from actors.straight import Straight
from actors.untrusted_headers import WithoutUntrustedHeaders


def middlewares() -> list[Middleware]:
    return [Middleware(WithoutUntrustedHeaders), Middleware(Straight)]
