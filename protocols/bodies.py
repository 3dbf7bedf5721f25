"""Reading request bodies: JSON to wire structs, and what is wrong with them said plainly.

Unknown fields are tolerated and their names handed back, so that the caller can report what it did
not honour. A fault names the field as the public APIs do: `messages.1.content.0.text`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from protocols import surrogates
from turns.errors import InvalidRequestError

T = TypeVar("T")

_AT = re.compile(r" - at `(?P<path>[^`]*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<name>[^`]+)`")
_INDEX = re.compile(r"\[(\d+|\.\.\.)\]")
_keys = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_any = msgspec.json.Decoder().decode


class Read(msgspec.Struct, Generic[T]):
    """A body as a wire struct, the names of its top-level fields, and what had to be mended."""

    request: T
    keys: frozenset[str]
    mended: list[str]

    def unread(self, known: frozenset[str]) -> list[str]:
        """What to report: the fields that are not known, and what was mended."""
        return sorted(self.keys - known) + self.mended


def read(body: bytes, decode: Callable[[bytes], T]) -> Read[T]:
    """A whole request body."""
    sound = surrogates.mend(body)
    try:
        str(sound, "utf-8")  # the decoder does not look into what it skips, which is kept too
        keys = _keys(sound)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _broken(error) from None
    mended = [] if sound is body else [surrogates.REPORT]
    return Read(part(sound, decode, ""), frozenset(keys), mended)


def part(raw: bytes | msgspec.Raw, decode: Callable[[bytes], T], where: str) -> T:
    """A part of a body, `where` its path in the body."""
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        raise fault(error, where) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _broken(error) from None


def value(raw: bytes | msgspec.Raw, where: str) -> Any:
    """A part of a body as plain Python values."""
    return part(raw, _any, where)


def text_of(raw: msgspec.Raw) -> str:
    """The JSON text exactly as it was sent: key order, spacing and digits kept."""
    return bytes(raw).decode()


def given(raw: msgspec.Raw) -> bool:
    """Whether a part is there and not null."""
    return opening(raw) not in (b"n", b"")


def opening(raw: msgspec.Raw) -> bytes:
    """The first byte of a part: what kind of JSON value it is."""
    return bytes(memoryview(raw)[:1])


def fault(error: msgspec.ValidationError, where: str) -> InvalidRequestError:
    """The error of msgspec in the words of the public APIs."""
    message = str(error)
    path = ""
    if at := _AT.search(message):
        message = message[: at.start()]
        path = _INDEX.sub(r".\1", at["path"].removeprefix("$")).removeprefix(".")
    if missing := _MISSING.match(message):
        path = f"{path}.{missing['name']}" if path else missing["name"]
        message = "Field required"
    param = ".".join(step for step in (where, path) if step)
    return invalid(param, message)


def invalid(param: str, message: str) -> InvalidRequestError:
    """A fault at a field, worded `field: what is wrong`."""
    return InvalidRequestError(f"{param}: {message}" if param else message, param=param or None)


def _broken(error: Exception) -> InvalidRequestError:
    if isinstance(error, RecursionError):
        return InvalidRequestError("The request body is nested too deeply; flatten it.")
    if isinstance(error, msgspec.ValidationError):
        return InvalidRequestError("The request body must be a JSON object.")
    return InvalidRequestError(f"The request body is not valid JSON: {error}. Send UTF-8 JSON.")
