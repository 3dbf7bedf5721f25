"""The one tree of errors, neutral of every API; each message says what to do.

TreadleError
├── InvalidRequestError    400: the client must change the request
│   └── ContextTooLongError 400: prompt tokens over the model's window
├── UnknownModelError      404
├── NotFoundError          404: a stored thing that is not there
├── AuthenticationError    401
├── ForbiddenError         403: the key does not allow it
├── TooLargeError          413
├── OverloadedError        429 / 529, with retry_after
│   └── RateLimitedError   429: the key has used what it may, with retry_after
├── EngineError            500: the engine failed or died
└── UnavailableError       503: no replica can serve now, with retry_after
"""

from __future__ import annotations

from typing import Literal

ErrorKind = Literal[
    "invalid_request",
    "context_too_long",
    "unknown_model",
    "not_found",
    "authentication",
    "forbidden",
    "too_large",
    "overloaded",
    "rate_limited",
    "engine",
    "unavailable",
    "internal",
]


class TreadleError(Exception):
    """Root of the tree. `kind` decides each API's status and wording."""

    kind: ErrorKind = "internal"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class InvalidRequestError(TreadleError):
    """The request cannot be served as it stands; `param` names the field: `messages.1.role`."""

    kind: ErrorKind = "invalid_request"


class ContextTooLongError(InvalidRequestError):
    """The prompt has `tokens` tokens, the model takes `limit`."""

    kind: ErrorKind = "context_too_long"

    def __init__(self, tokens: int, limit: int) -> None:
        super().__init__(f"prompt is too long: {tokens} tokens > {limit} maximum")
        self.tokens = tokens
        self.limit = limit


class UnknownModelError(TreadleError):
    kind: ErrorKind = "unknown_model"


class NotFoundError(TreadleError):
    kind: ErrorKind = "not_found"


class AuthenticationError(TreadleError):
    kind: ErrorKind = "authentication"


class ForbiddenError(TreadleError):
    """Who asks is known, and may not."""

    kind: ErrorKind = "forbidden"


class TooLargeError(TreadleError):
    kind: ErrorKind = "too_large"


class OverloadedError(TreadleError):
    """The fleet is full; nothing was begun. `retry_after` is in seconds."""

    kind: ErrorKind = "overloaded"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimitedError(OverloadedError):
    """A key has used what it may; other callers are served."""

    kind: ErrorKind = "rate_limited"


class UnavailableError(OverloadedError):
    kind: ErrorKind = "unavailable"


class EngineError(TreadleError):
    kind: ErrorKind = "engine"
