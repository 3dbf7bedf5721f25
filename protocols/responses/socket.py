"""The WebSocket mode of the Responses API: the same events, one JSON text frame each.

A `response.create` frame is decoded like a request body (its `type` is tolerated). With
`generate: false` (`Turn.echo["generate"]`) the client only wants its prompt prefilled: the reply is
a response that began and completed with no output.
"""

from __future__ import annotations

from typing import Any

import msgspec

from protocols import errors, sse
from protocols.protocol import Encoder
from turns.errors import InvalidRequestError, TreadleError
from turns.events import Event, TurnEnded, TurnStarted, Usage

CREATE = "response.create"
_DATA = b"data: "


def frames(raw: bytes) -> list[str]:
    """The JSON of each event in a piece of stream that an encoder wrote."""
    lines = raw.split(b"\n")
    return [line.removeprefix(_DATA).decode() for line in lines if line.startswith(_DATA)]


def error_frame(error: TreadleError) -> str:
    """An error before a response began; the connection stays open for the next request.

    `headers` are those that the same error would have over HTTP and that a client acts on.
    """
    status, headers, body = errors.openai(error, "")
    kept = {name: value for name, value in headers.items() if name == "retry-after"}
    told: dict[str, Any] = msgspec.json.decode(body)["error"]
    told["code"] = told["code"] or told["type"]  # a frame has no status line to tell it by
    frame = {"type": "error", "status": status, "headers": kept, "error": told}
    return sse.dumps(frame).decode()


def unknown_frame(kind: str) -> InvalidRequestError:
    """The error for a frame of another type."""
    return InvalidRequestError(f"Send frames of type '{CREATE}', not '{kind}'", param="type")


def warmed(encoder: Encoder, tokens: int) -> list[str]:
    """The frames of a turn that was only prefilled with `tokens` tokens."""
    events: list[Event] = [TurnStarted(tokens), TurnEnded("end", Usage(tokens))]
    return frames(encoder.encode(events))
