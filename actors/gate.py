"""The gate: an ASGI application in front of another, through which every request comes.

It decides who calls, before a byte of a body is read, and takes the secret out of the headers: no
code behind it can log what it does not have. Who is refused is told in the shape that its API has.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from access.caller import Caller, Shown
from access.keys import Scope as AccessScope
from access.keys import read
from access.surface import scope_for
from actors.doorkeeper import Doorkeeper
from actors.exchange import REQUEST_ID, respond
from actors.reception import (
    CALLER,
    CALLER_NOW,
    Receive,
    Scope,
    header_map,
    local_path,
    request_id,
    shown,
)
from actors.stream import Send
from observe.audit import Audit
from protocols.registry import APIS
from turns.errors import ErrorKind, InvalidRequestError, TreadleError

SECRETS = frozenset({b"authorization", b"x-api-key", b"proxy-authorization", b"cookie"})
PRINCIPAL = b"x-treadle-principal"
"""Tells the application behind who calls, where it reads headers alone. Never the client's own."""

POLICY_VIOLATION = 1008
TOO_LARGE = 431
Answer = tuple[int, dict[str, str], bytes]
Refuse = Callable[[str, Mapping[str, str], TreadleError, str], Answer]
"""From path, headers, error and request id to the response."""


def in_own_shape(path: str, headers: Mapping[str, str], error: TreadleError, name: str) -> Answer:
    """As the API of that path spells it; elsewhere Anthropic's where the client says so."""
    for api in APIS.values():
        if path == api.path:
            return api.error(error, request_id=name)
    anthropic = "anthropic-version" in headers or "/messages" in path
    return APIS["messages" if anthropic else "chat"].error(error, request_id=name)


class Gate:
    """`said` gives headers for a refusal, from its request's; `scope_of` what a path needs; `tell`
    hears the kind of each refusal.
    """

    def __init__(
        self,
        inside: Any,
        doors: Doorkeeper,
        audit: Audit,
        *,
        refuse: Refuse = in_own_shape,
        scope_of: Callable[[str], AccessScope | None] = scope_for,
        said: Callable[[Mapping[str, str]], dict[str, str]] = lambda _: {},
        max_header_bytes: int = 65_536,
        tell: Callable[[ErrorKind], None] = lambda _: None,
    ) -> None:
        self.inside = inside
        self._doors = doors
        self._audit = audit
        self._refuse = refuse
        self._scope_of = scope_of
        self._said = said
        self._most = max_header_bytes
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self.inside(scope, receive, send)
            return
        headers = header_map(scope)
        try:
            if sum(len(name) + len(value) for name, value in scope["headers"]) > self._most:
                raise InvalidRequestError(f"the headers are over {self._most} bytes; send fewer")
            caller = await self._caller(scope, headers)
        except TreadleError as error:
            await self._refused(scope, receive, send, headers, error)
            return
        passed = _passed(scope, caller)
        if scope["type"] == "websocket":
            passed[CALLER_NOW] = partial(self._caller_now, scope, headers)
        await self.inside(passed, receive, send)

    async def _caller(self, scope: Scope, headers: Mapping[str, str]) -> Caller:
        needed = self._needed(scope, local_path(scope), headers)
        caller = await self._doors.caller(headers, needed)
        return replace(caller, secret=Shown(shown(headers)))

    async def _caller_now(self, scope: Scope, headers: Mapping[str, str]) -> Caller:
        """Who calls on a connection that was let in before. Raises what refuses it now."""
        try:
            return await self._caller(scope, headers)
        except TreadleError as error:
            self._note(scope, headers, error, uuid.uuid4().hex)
            raise

    def _needed(self, scope: Scope, path: str, headers: Mapping[str, str]) -> AccessScope | None:
        """A preflight comes without a key by design, and is told which headers may come."""
        preflight = scope.get("method") == "OPTIONS" and "access-control-request-method" in headers
        return None if preflight else self._scope_of(path)

    async def _refused(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Mapping[str, str],
        error: TreadleError,
    ) -> None:
        name, path = request_id(headers, uuid.uuid4().hex), local_path(scope)
        self._note(scope, headers, error, name)
        status, own, body = self._refuse(path, headers, error, name)
        if isinstance(error, InvalidRequestError):
            status = TOO_LARGE
        kept = {key: value for key, value in own.items() if not key.endswith(REQUEST_ID)}
        said = {**kept, **self._said(headers), REQUEST_ID: name}
        if error.kind == "authentication":
            said["www-authenticate"] = "Bearer"
        if scope["type"] == "http":
            await respond(send, status, said, body)
            return
        await receive()  # websocket.connect
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            return
        raw = [(key.encode(), value.encode()) for key, value in said.items()]
        start = {"type": "websocket.http.response.start", "status": status, "headers": raw}
        await send(start)
        await send({"type": "websocket.http.response.body", "body": body})

    def _note(
        self, scope: Scope, headers: Mapping[str, str], error: TreadleError, name: str
    ) -> None:
        known = read(shown(headers))
        self._tell(error.kind)
        self._audit.refused(
            kind=error.kind,
            request=name,
            method=scope.get("method", scope["type"]),
            path=local_path(scope),
            client=client_of(scope, headers),
            key=known[0] if known else "",
        )


def _passed(scope: Scope, caller: Caller) -> Scope:
    """The request as the application sees it: with its caller, without its secrets."""
    kept = [
        (name, value)
        for name, value in scope["headers"]
        if name.lower() not in SECRETS and name.lower() != PRINCIPAL
    ]
    kept.append((PRINCIPAL, caller.owner.encode()))
    return {**scope, "headers": kept, CALLER: caller}


def client_of(scope: Scope, headers: Mapping[str, str]) -> str:
    """Where a request comes from, as the proxy before us says it, else as the socket does."""
    forwarded = headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    client = scope.get("client")
    return forwarded or (str(client[0]) if client else "")
