"""The admin's pages: keys made, listed and revoked, below `/v1/treadle/admin`.

The gate lets nobody here but the admin. A key is in the answer that makes it and nowhere else.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request, Response
from msgspec import Meta, Struct

from access.keys import Allowance, Key, Scope
from actors.doorkeeper import Doorkeeper
from actors.gate import client_of
from actors.keyring import Keyring
from actors.page_requests import answer, asked, asked_with_body
from actors.reception import Limits
from observe.audit import Audit
from protocols.headers import TIERS
from turns.errors import InvalidRequestError

LIMITS = Limits(body=65_536, ratio=10.0)
Count = Annotated[int, Meta(ge=1)]


class Wanted(Struct, forbid_unknown_fields=True):
    """A key as the admin asks for it."""

    tenant: Annotated[str, Meta(min_length=1, max_length=100)]
    name: Annotated[str, Meta(max_length=200)] = ""
    scopes: tuple[Scope, ...] = ("turns", "tools")
    models: tuple[str, ...] = ()
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    concurrent_turns: Count | None = None
    most_priority: Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None = None
    most_tier: Annotated[int, Meta(ge=-TIERS, le=TIERS)] | None = None
    days: Annotated[float, Meta(ge=0)] = 0.0


def shown(key: Key) -> dict[str, Any]:
    """A key as it is listed: everything but its digest."""
    fields: dict[str, Any] = msgspec.to_builtins(key)
    del fields["digest"]
    return fields


def admin_pages(keyring: Keyring, doors: Doorkeeper, audit: Audit) -> APIRouter:
    router = APIRouter(prefix="/v1/treadle/admin")

    @router.get("/keys")
    async def every() -> Response:
        return answer(msgspec.json.encode({"keys": [shown(key) for key in await keyring.every()]}))

    @router.post("/keys")
    async def add(request: Request) -> Response:
        sent = await asked_with_body(request, LIMITS)
        wanted = _wanted(sent.body)
        allowance = Allowance(
            **{name: getattr(wanted, name) for name in Allowance.__struct_fields__}
        )
        key, spelled = await keyring.add(
            tenant=wanted.tenant,
            name=wanted.name,
            scopes=wanted.scopes,
            models=wanted.models,
            allowance=allowance,
            days=wanted.days,
        )
        audit.changed("key_added", **_who(request), key=key.id, tenant=key.tenant)
        body = shown(key) | {"key": spelled}
        return answer(msgspec.json.encode(body), headers={"cache-control": "no-store"})

    @router.delete("/keys/{key_id}")
    async def revoke(key_id: str, request: Request) -> Response:
        try:
            key = await keyring.revoke(key_id)
        finally:  # the store may have taken what it did not confirm
            doors.forget(key_id)
        audit.changed("key_revoked", **_who(request), key=key.id, tenant=key.tenant)
        return answer(msgspec.json.encode(shown(key)))

    return router


def _who(request: Request) -> dict[str, str]:
    known = asked(request)
    return {"request": known.id, "client": client_of(request.scope, known.headers)}


def _wanted(body: bytes) -> Wanted:
    try:
        wanted = msgspec.json.decode(body, type=Wanted)
    except msgspec.DecodeError as error:
        raise InvalidRequestError(f"this is no key: {error}") from None
    if "admin" in wanted.scopes:
        raise InvalidRequestError("the scope 'admin' is the admin key's alone", param="scopes")
    return wanted
