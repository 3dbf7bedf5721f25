"""Conversations: a list of items that requests name instead of sending it.

`conversation` in a Responses request reads the list and, when the turn has ended, adds the turn's
input and output to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from protocols import bodies, ids, sse
from protocols.responses import stored
from turns.errors import NotFoundError

MOST_AT_ONCE = 20
"""Items that one request may add."""


class _Created(Struct):
    items: list[Raw] | None = None
    metadata: dict[str, str] | None = None


class _Head(Struct):
    id: str


_created = msgspec.json.Decoder(_Created).decode
_head = msgspec.json.Decoder(_Head).decode


def made(body: bytes, conversation_id: str, created: int) -> tuple[bytes, list[bytes]]:
    """`POST /v1/conversations`: the new conversation as it is shown, and its first items."""
    body = body or b"{}"
    metadata = bodies.read(body, _created).request.metadata or {}
    return _shown(conversation_id, created, metadata), items_of(body, conversation_id)


def changed(body: bytes, head: bytes) -> bytes:
    """`POST /v1/conversations/{id}`: the conversation with other metadata."""
    given = bodies.read(body, _created).request
    known: dict[str, Any] = msgspec.json.decode(head)
    return sse.dumps(known | {"metadata": given.metadata or {}})


def items_of(body: bytes, seed: str) -> list[bytes]:
    """The items that a body adds, each with an id; those minted are made from `seed`."""
    given = bodies.read(body, _created).request.items or []
    if len(given) > MOST_AT_ONCE:
        raise bodies.invalid("items", f"At most {MOST_AT_ONCE} items can be added at once")
    return stored.input_items(msgspec.json.encode({"input": given}), seed, field="items")


def id_of(head: bytes) -> str:
    return _head(head).id


def minted(stem: str) -> str:
    """The id of a conversation."""
    return f"conv_{ids.stem(stem)}"


def deleted(conversation_id: str) -> bytes:
    """The body of `DELETE /v1/conversations/{id}`."""
    return sse.dumps({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


def found(items: Sequence[bytes], item_id: str) -> bytes:
    """One item. Raises NotFoundError."""
    for item in items:
        if msgspec.json.decode(item).get("id") == item_id:
            return item
    raise NotFoundError(f"Item with id '{item_id}' not found.", param="item_id")


def not_found(conversation_id: str) -> NotFoundError:
    return NotFoundError(
        f"Conversation with id '{conversation_id}' not found.", param="conversation"
    )


def _shown(conversation_id: str, created: int, metadata: dict[str, str]) -> bytes:
    return sse.dumps(
        {
            "id": conversation_id,
            "object": "conversation",
            "created_at": created,
            "metadata": metadata,
        }
    )
