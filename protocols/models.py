"""Model lists and look-ups, as each family of clients asks for them.

A request with an `anthropic-version` header gets Anthropic's shape and its pagination, any other
OpenAI's; one with Codex's `client_version` gets Codex's catalogue beside it. All come from one
record per model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from msgspec import Struct, field

from protocols import sse
from protocols.bodies import invalid
from protocols.catalog import Input, Profile, codex
from turns.errors import UnknownModelError

PAGE = 20
LARGEST_PAGE = 1000


class ModelCard(Struct, frozen=True):
    """What a client may know of a served model. `created` is in Unix seconds; `takes` is what the
    model itself can be shown.
    """

    id: str
    display_name: str = ""
    context_window: int | None = None
    max_output: int | None = None
    created: int = 0
    owner: str = "treadle"
    profile: Profile = field(default_factory=Profile)
    takes: tuple[Input, ...] = ("text",)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What a client is told that a prompt may hold."""
        return self.takes if self.profile.inputs is None else self.profile.inputs


def is_anthropic(headers: Mapping[str, str]) -> bool:
    """Which of the two shapes a client expects."""
    return "anthropic-version" in headers


def listing(
    cards: Sequence[ModelCard], headers: Mapping[str, str], query: Mapping[str, str]
) -> bytes:
    """The body of `GET /v1/models`; raises `InvalidRequestError` for a bad page."""
    if is_anthropic(headers):
        return sse.dumps(_page(cards, query))
    body: dict[str, Any] = {"object": "list", "data": [_openai(card) for card in cards]}
    if "client_version" in query:
        body["models"] = [
            codex(card.id, card.display_name, card.context_window, card.profile, card.inputs)
            for card in cards
        ]
    return sse.dumps(body)


def etag(body: bytes) -> str:
    """The `ETag` of a list; the same value as `x-models-etag` on a turn spares Codex a fetch."""
    return f'"{blake2b(body, digest_size=8).hexdigest()}"'


def lookup(cards: Sequence[ModelCard], model: str, headers: Mapping[str, str]) -> bytes:
    """The body of `GET /v1/models/{id}`; raises `UnknownModelError`."""
    card = next((card for card in cards if card.id == model), None)
    if card is None:
        raise unknown(model, cards)
    return sse.dumps(_anthropic(card) if is_anthropic(headers) else _openai(card))


def unknown(model: str, cards: Sequence[ModelCard]) -> UnknownModelError:
    """The error for a model that is not served; it names those that are."""
    served = ", ".join(card.id for card in cards) or "none"
    return UnknownModelError(f"The model '{model}' does not exist; served: {served}", param="model")


def _page(cards: Sequence[ModelCard], query: Mapping[str, str]) -> dict[str, Any]:
    limit = _limit(query.get("limit"))
    names = [card.id for card in cards]
    after, before = query.get("after_id"), query.get("before_id")
    for param, name in (("after_id", after), ("before_id", before)):
        if name and name not in names:
            raise invalid(param, f"There is no model '{name}' to page from")
    found = list(cards[names.index(after) + 1 :] if after else cards)
    if before:
        found = list(cards[: names.index(before)])
        page, more = found[-limit:], len(found) > limit
    else:
        page, more = found[:limit], len(found) > limit
    return {
        "data": [_anthropic(card) for card in page],
        "has_more": more,
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
    }


def _limit(given: str | None) -> int:
    if not given:
        return PAGE
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= LARGEST_PAGE:
        raise invalid("limit", f"Input should be a number from 1 to {LARGEST_PAGE}")
    return int(given)


def _openai(card: ModelCard) -> dict[str, Any]:
    return {
        "id": card.id,
        "object": "model",
        "created": card.created,
        "owned_by": card.owner,
        "input_modalities": list(card.inputs),
    } | _limits(card, "context_window", "max_output_tokens")


def _anthropic(card: ModelCard) -> dict[str, Any]:
    return {
        "type": "model",
        "id": card.id,
        "display_name": card.display_name or card.id,
        "created_at": datetime.fromtimestamp(card.created, UTC).isoformat().replace("+00:00", "Z"),
        "capabilities": {"image_input": {"supported": "image" in card.inputs}},
    } | _limits(card, "max_input_tokens", "max_tokens")


def _limits(card: ModelCard, window: str, output: str) -> dict[str, int]:
    limits = {window: card.context_window, output: card.max_output}
    return {name: limit for name, limit in limits.items() if limit is not None}
