"""Receiving a request: its headers, its id, whose it is, and its body within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from access.caller import Caller
from actors.content_codings import codings_of, decoded
from protocols.headers import plain
from turns.errors import TooLargeError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

CALLER = "treadle.caller"
"""Where the gate puts the caller in the ASGI scope."""

CALLER_NOW = "treadle.caller_now"
"""Where it puts, for a connection that outlives a request, how to ask again who calls."""

Who = Callable[[], Awaitable[Caller]]

ANYONE = Caller()
INLINE = 65_536
"""Bytes of a coded body up to which decoding it on the event loop is cheaper than a thread."""


class Limits(Struct, frozen=True):
    """What a request body may be: bytes as sent and as decoded, and how far it may unfold."""

    body: int = 64 * 2**20
    ratio: float = 200.0


class ClientGoneError(Exception):
    """The client closed before its request was whole."""


class Asked(Struct, frozen=True):
    """A request as it was received. `id` names it in logs and to its client, `caller` who sent it
    (one owner never sees what another has stored).
    """

    id: str
    headers: Mapping[str, str]
    body: bytes = b""
    caller: Caller = ANYONE

    @property
    def owner(self) -> str:
        return self.caller.owner

    @property
    def keyed(self) -> Mapping[str, str]:
        """The headers with the key that the gate took out of them: for servers of our own alone."""
        secret = self.caller.secret
        return {**self.headers, "authorization": f"Bearer {secret!s}"} if secret else self.headers


def header_map(scope: Mapping[str, Any]) -> dict[str, str]:
    """The request's headers, lower-case names, the last of a repeated one."""
    return {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}


def local_path(scope: Scope) -> str:
    """The path below the prefix that the application is mounted at."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def request_id(headers: Mapping[str, str], minted: str) -> str:
    """The id under which the request is known before us (Serve gives each one), else ours."""
    return plain(headers, "x-request-id") or minted


def shown(headers: Mapping[str, str]) -> str:
    """The key that the client shows, in either of the two ways; "" where it shows none."""
    said = headers.get("authorization", "")
    scheme, _, token = said.partition(" ")
    if token and scheme.lower() == "bearer":
        return token.strip()
    return headers.get("x-api-key", "").strip() or said.strip()


def owner(headers: Mapping[str, str]) -> str:
    """A digest of the key that the client shows, "" where it shows none. The key is not kept."""
    secret = shown(headers)
    return blake2b(secret.encode(), digest_size=12).hexdigest() if secret else ""


def caller(scope: Scope, headers: Mapping[str, str]) -> Caller:
    """Whom the gate has found to call; without a gate, whoever shows that key."""
    found: Caller | None = scope.get(CALLER)
    return found if found is not None else Caller(owner=owner(headers))


async def receive_body(receive: Receive, headers: Mapping[str, str], limits: Limits) -> bytes:
    """The whole body, decoded. Raises TooLargeError, InvalidRequestError, ClientGoneError."""
    codings = codings_of(headers.get("content-encoding", ""))
    said = headers.get("content-length", "")
    if said.isdigit() and int(said) > limits.body:
        raise _too_large(limits.body)  # before the first byte of it
    body = await _read(receive, limits.body)
    if not codings:
        return body
    if len(body) <= INLINE:
        return decoded(body, codings, limit=limits.body, ratio=limits.ratio)
    return await asyncio.to_thread(decoded, body, codings, limit=limits.body, ratio=limits.ratio)


async def _read(receive: Receive, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)
        await asyncio.sleep(0)


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"the request body is over {limit} bytes; send a smaller one")
