"""Stored responses: what is kept of one, how a later request goes on from it, how it is shown.

A request that names `previous_response_id` is continued by putting the items of the earlier turns
in front of its own, and decoding the result like any other request: so going on from the store and
replaying the whole history are the same by construction. `instructions` are never inherited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from protocols import bodies, ids, sse, surrogates
from turns.errors import NotFoundError

LARGEST_PAGE = 100
PAGE = 20
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(str | list[msgspec.Raw] | None).decode


_NULL = msgspec.Raw(b"null")


Status = Literal["in_progress", "queued", "completed", "incomplete", "failed", "cancelled"]


class _Stated(msgspec.Struct):
    status: Status
    background: bool = False


class _Output(msgspec.Struct):
    output: list[msgspec.Raw] = msgspec.field(default_factory=list)


def input_items(body: bytes, turn_id: str, *, field: str = "input") -> list[bytes]:
    """The input items of a request as JSON texts, each with an id; a string is a message.

    `field` is what a fault calls the list.
    """
    fields = bodies.part(surrogates.mend(body), _fields, "")
    given = bodies.part(fields.get("input", _NULL), _items, field)
    if isinstance(given, str):
        part = {"type": "input_text", "text": given}
        said = {"type": "message", "role": "user", "content": [part]}
        return [msgspec.json.encode({"id": ids.item("item", turn_id, 0), **said})]
    return [
        _named(bodies.part(raw, _fields, f"{field}.{index}"), turn_id, index)
        for index, raw in enumerate(given or ())
    ]


def output_items(response: bytes) -> list[bytes]:
    """The output items of a response body as JSON texts."""
    items = msgspec.json.decode(response, type=_Output).output
    return [sse.verbatim(bytes(item)) for item in items]


def continued(body: bytes, earlier: Sequence[bytes], turn_id: str) -> bytes:
    """The request with the items of the earlier turns (input and output, in order) in front."""
    fields = bodies.part(surrogates.mend(body), _fields, "")
    whole = b"[" + b",".join([*earlier, *input_items(body, turn_id)]) + b"]"
    return msgspec.json.encode(fields | {"input": msgspec.Raw(whole)})


def not_found(response_id: str) -> NotFoundError:
    """The error for a response that is not there, worded for `previous_response_id`."""
    return NotFoundError(
        f"Previous response with id '{response_id}' not found; send the whole input instead.",
        param="previous_response_id",
    )


def compactable(body: bytes) -> bytes:
    """A `POST /v1/responses/compact` body as a request that asks for its own summary, whole."""
    fields = bodies.part(surrogates.mend(body), _fields, "")
    items = [*input_items(body, ""), b'{"type":"compaction_trigger"}']
    whole = msgspec.Raw(b"[" + b",".join(items) + b"]")
    return msgspec.json.encode(fields | {"input": whole, "stream": False, "store": False})


def compacted(body: bytes, response: bytes, turn_id: str) -> bytes:
    """Its answer: the user's own messages as they were, then the summary in place of all else."""
    read = msgspec.json.decode(response, type=dict[str, msgspec.Raw])
    kept = [_shown(item) for item in input_items(body, turn_id) if _role(item) == "user"]
    output = msgspec.Raw(b"[" + b",".join([*kept, *output_items(response)]) + b"]")
    names = ("id", "created_at", "usage")
    answer: dict[str, Any] = {"object": "response.compaction", "output": output}
    return msgspec.json.encode(answer | {name: read[name] for name in names})


def status_of(response: bytes) -> Status:
    """The status that a response body says it has."""
    return msgspec.json.decode(response, type=_Stated).status


def is_background(response: bytes) -> bool:
    return msgspec.json.decode(response, type=_Stated).background


def deleted(response_id: str) -> bytes:
    """The body of `DELETE /v1/responses/{id}`."""
    return sse.dumps({"id": response_id, "object": "response", "deleted": True})


def with_status(response: bytes, status: Status, **fields: Any) -> bytes:
    """A body under another status, and with other fields."""
    known: dict[str, Any] = msgspec.json.decode(response, type=dict[str, msgspec.Raw])
    if status == "cancelled" and "incomplete_details" in known:
        fields["incomplete_details"] = None  # what says why a response is incomplete
    return msgspec.json.encode(known | {"status": status} | fields)


def listing(items: Sequence[bytes], query: Mapping[str, str]) -> bytes:
    """The body of `GET /v1/responses/{id}/input_items`: newest first unless `order=asc`."""
    read = [msgspec.json.decode(item) for item in items]
    if query.get("order", "desc") != "asc":
        read.reverse()
    names = [item.get("id") for item in read]
    if after := query.get("after"):
        if after not in names:
            raise bodies.invalid("after", f"There is no item '{after}' to page from")
        read = read[names.index(after) + 1 :]
    limit = _limit(query.get("limit"))
    page = read[:limit]
    body = {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(read) > limit,
    }
    return sse.dumps(body)


def _role(item: bytes) -> Any:
    """The role of a message, None of any other item."""
    read = msgspec.json.decode(item)
    return read.get("role") if read.get("type", "message") == "message" else None


def _shown(item: bytes) -> bytes:
    """A message of a request as one of an output: its content in parts, and a status."""
    read: dict[str, Any] = msgspec.json.decode(item)
    if isinstance(read.get("content"), str):
        read["content"] = [{"type": "input_text", "text": read["content"]}]
    return msgspec.json.encode(read | {"status": read.get("status") or "completed"})


def _limit(given: str | None) -> int:
    if not given:
        return PAGE
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= LARGEST_PAGE:
        raise bodies.invalid("limit", f"Input should be a number from 1 to {LARGEST_PAGE}")
    return int(given)


def _named(item: dict[str, msgspec.Raw], turn_id: str, index: int) -> bytes:
    """The item with an id and a type, as OpenAI shows items that came without."""
    if "type" not in item:
        item = {"type": msgspec.Raw(b'"message"'), **item}
    if not bodies.given(item.get("id", _NULL)):
        item.pop("id", None)
        item = {"id": msgspec.Raw(sse.quote(ids.item("item", turn_id, index))), **item}
    return msgspec.json.encode(item)
