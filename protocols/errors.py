"""Errors as each public API spells them: one table, two envelopes.

The wording of an overflow is what harnesses look for before they compact: Claude Code searches for
"prompt is too long", the OpenAI clients for "maximum context length" or "context window".
"""

from __future__ import annotations

from msgspec import Struct

from protocols import sse
from turns.errors import ContextTooLongError, ErrorKind, OverloadedError, TreadleError
from turns.events import TurnFailed

JSON = "application/json"


class Spelling(Struct, frozen=True):
    """One kind of error in both families of APIs. Codex retries by `code` in mid-stream."""

    anthropic: int
    anthropic_type: str
    openai: int
    openai_type: str
    code: str | None


INVALID = "invalid_request_error"
TABLE: dict[ErrorKind, Spelling] = {
    "invalid_request": Spelling(400, INVALID, 400, INVALID, None),
    "context_too_long": Spelling(400, INVALID, 400, INVALID, "context_length_exceeded"),
    "unknown_model": Spelling(404, "not_found_error", 404, INVALID, "model_not_found"),
    "not_found": Spelling(404, "not_found_error", 404, INVALID, "not_found"),
    "authentication": Spelling(401, "authentication_error", 401, INVALID, "invalid_api_key"),
    "forbidden": Spelling(403, "permission_error", 403, INVALID, "insufficient_permissions"),
    "too_large": Spelling(413, "request_too_large", 413, INVALID, "request_too_large"),
    "overloaded": Spelling(529, "overloaded_error", 429, "rate_limit_error", "rate_limit_exceeded"),
    "rate_limited": Spelling(
        429, "rate_limit_error", 429, "rate_limit_error", "rate_limit_exceeded"
    ),
    "unavailable": Spelling(503, "overloaded_error", 503, "server_error", "server_error"),
    "engine": Spelling(500, "api_error", 500, "server_error", "server_error"),
    "internal": Spelling(500, "api_error", 500, "server_error", "server_error"),
}
# The field decides the code where OpenAI's clients look for one.
CODES = {"previous_response_id": "previous_response_not_found"}
RETRY_AFTER_KINDS = ("overloaded", "unavailable")


def anthropic(error: TreadleError, request_id: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an error of the Messages API."""
    kind = TABLE[error.kind]
    body = {
        "type": "error",
        "error": {"type": kind.anthropic_type, "message": error.message},
        "request_id": request_id,
    }
    return kind.anthropic, _headers(error, "request-id", request_id), sse.dumps(body)


def openai(error: TreadleError, request_id: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an error of the Chat and Responses APIs."""
    kind = TABLE[error.kind]
    code = kind.code
    if error.kind == "not_found":
        code = CODES.get(error.param or "", code)
    body = {
        "error": {
            "message": openai_message(error),
            "type": kind.openai_type,
            "param": error.param,
            "code": code,
        }
    }
    return kind.openai, _headers(error, "x-request-id", request_id), sse.dumps(body)


def openai_message(error: TreadleError) -> str:
    """The message, an overflow worded as OpenAI words it."""
    if not isinstance(error, ContextTooLongError):
        return error.message
    return (
        f"This model's maximum context length is {error.limit} tokens, but the input has "
        f"{error.tokens} tokens. Your input exceeds the context window of this model; shorten it."
    )


def from_failed(failed: TurnFailed) -> TreadleError:
    """The error that a turn which died would have been answered with."""
    error = TreadleError(failed.message)
    error.kind = failed.kind
    return error


def _headers(error: TreadleError, name: str, request_id: str) -> dict[str, str]:
    headers = {"content-type": JSON, name: request_id}
    if isinstance(error, OverloadedError):
        headers["retry-after"] = str(error.retry_after)
    elif error.kind in RETRY_AFTER_KINDS:
        headers["retry-after"] = "1"  # Codex gives a 429 without it up at once
    return headers
