"""What the pages share: reading a request, and refusing one in the shape its client reads."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response
from msgspec.structs import replace

from actors.reception import (
    Asked,
    ClientGoneError,
    Limits,
    caller,
    header_map,
    receive_body,
    request_id,
)
from protocols.registry import APIS
from turns.errors import InvalidRequestError, TreadleError

JSON = "application/json"
MINTED = "treadle.request_id"
"""Where the edge puts the request's id in the ASGI scope."""


def asked(request: Request) -> Asked:
    """The request without a body."""
    headers = header_map(request.scope)
    named = request_id(headers, request.scope.get(MINTED, ""))
    return Asked(named, headers, b"", caller(request.scope, headers))


async def asked_with_body(request: Request, limits: Limits) -> Asked:
    """The request with its body, decoded. Raises TooLargeError, InvalidRequestError."""
    known = asked(request)
    try:
        body = await receive_body(request.receive, known.headers, limits)
    except ClientGoneError:
        raise InvalidRequestError("the request ended before its body was whole") from None
    return replace(known, body=body)


def answer(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status_code=status, media_type=JSON, headers=headers)


def refusal(request: Request, error: TreadleError) -> Response:
    """An error in the shape that this client reads: Anthropic's when it says so, else OpenAI's."""
    anthropic = "anthropic-version" in request.headers or "/messages" in request.url.path
    api = APIS["messages" if anthropic else "chat"]
    status, headers, body = api.error(error, request_id=asked(request).id)
    kept: dict[str, Any] = {
        name: value for name, value in headers.items() if not name.endswith("request-id")
    }
    return Response(body, status_code=status, headers=kept)
