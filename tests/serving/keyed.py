"""A server that asks for keys, and the keys of two tenants."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx

from tests.serving.server import Server, serving, settings

ADMIN = "an-admin-key-of-the-tests"
KEYS = "/v1/treadle/admin/keys"


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def make(server: Server, tenant: str, **wanted: Any) -> dict[str, Any]:
    """A key as the admin is told it; `key` is the key itself."""
    body = {"tenant": tenant} | wanted
    made = await server.http.post(KEYS, json=body, headers=bearer(ADMIN))
    assert made.status_code == 200, made.text
    return dict(made.json())


@contextlib.asynccontextmanager
async def keyed(monkeypatch: Any, **changes: Any) -> AsyncIterator[Server]:
    """A server whose admin is `ADMIN`; `changes` as for `settings`."""
    monkeypatch.setenv("TREADLE_ADMIN_KEY", ADMIN)
    access = {"keys": "required"} | changes.pop("access", {})
    async with serving(settings(access=access, **changes)) as server:
        server.says({"text": "Hello."})
        yield server


def asking(api: str, **fields: Any) -> dict[str, Any]:
    """A short request of an API."""
    said = [{"role": "user", "content": "Hi"}]
    bodies: dict[str, dict[str, Any]] = {
        "/v1/messages": {"max_tokens": 20, "messages": said},
        "/v1/chat/completions": {"messages": said},
        "/v1/responses": {"input": "Hi"},
    }
    return {"model": "lab-model"} | bodies[api] | fields


def refused(answer: httpx.Response, api: str) -> str:
    """The kind of a refusal, read as a client of that API reads it."""
    body = answer.json()
    if api == "/v1/messages":
        assert body["type"] == "error"
        return str(body["error"]["type"])
    assert set(body) == {"error"}
    return str(body["error"]["code"])
