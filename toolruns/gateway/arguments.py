"""What callers send, checked: our arguments of a streaming tool, and those of the fixed tools."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import jsonschema
import msgspec
from msgspec import Meta, Struct

from toolruns.budget import Wish
from toolruns.predicate.parse import parse
from toolruns.predicate.syntax import Predicate, PredicateError
from turns.errors import InvalidRequestError

Positive = Annotated[int, Meta(ge=1, le=10**9)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Text = Annotated[str, Meta(max_length=8192)]


class Ours(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments that every streaming tool takes beside its own."""

    consume_until: Text | None = None
    max_rows: Positive | None = None
    max_seconds: Seconds | None = None
    checkpoint: bool = False
    supersedes: Text | None = None
    resume_from: Text | None = None

    def wish(self) -> Wish:
        return Wish(self.max_rows, self.max_seconds)

    def until(self) -> Predicate | None:
        """The predicate. Raises InvalidRequestError that points at the column."""
        return predicate(self.consume_until)


class ContinueArguments(Struct, frozen=True, forbid_unknown_fields=True):
    handle: Text
    consume_until: Text | None = None
    max_rows: Positive | None = None
    max_seconds: Seconds | None = None
    checkpoint: bool = False

    def wish(self) -> Wish:
        return Wish(self.max_rows, self.max_seconds)


class RowsArguments(Struct, frozen=True, forbid_unknown_fields=True):
    handle: Text
    where: Text = ""
    columns: list[Text] = []
    order_by: Text = ""
    offset: Annotated[int, Meta(ge=0, le=10**9)] = 0
    limit: Annotated[int, Meta(ge=1, le=50)] = 20


class QueryArguments(Struct, frozen=True, forbid_unknown_fields=True):
    handle: Text
    sql: Text


class CloseArguments(Struct, frozen=True, forbid_unknown_fields=True):
    handle: Text


T = TypeVar("T")


def read(arguments: dict[str, Any], type_: type[T]) -> T:
    """The arguments as a struct. Raises InvalidRequestError that names the argument."""
    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        return msgspec.convert(given, type_)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        raise InvalidRequestError(message, param=place.rstrip("`") or None) from None


def check(arguments: dict[str, Any], schema: dict[str, Any]) -> None:
    """Hold a tool's own arguments against its JSON schema. Raises InvalidRequestError."""
    validator = jsonschema.Draft202012Validator(schema or {"type": "object"})
    for error in validator.iter_errors(arguments):
        place = ".".join(str(step) for step in error.absolute_path)
        message = f"{place or 'arguments'}: {error.message[:300]}"
        raise InvalidRequestError(message, param=place or None)


def predicate(text: str | None) -> Predicate | None:
    if text is None:
        return None
    try:
        return parse(text)
    except PredicateError as error:
        raise InvalidRequestError(str(error), param="consume_until") from None
