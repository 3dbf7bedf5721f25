"""The models, as each kind of client asks for them."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from access.caller import Caller
from actors.ingress import Ingress
from actors.model_names import ModelNames
from actors.page_requests import answer
from actors.reception import caller, header_map
from protocols import models as model_lists


def model_pages(ingress: Ingress) -> APIRouter:
    router = APIRouter()
    names = ingress.names

    @router.get("/v1/models")
    async def models(request: Request) -> Response:
        headers, query = header_map(request.scope), dict(request.query_params)
        who = caller(request.scope, headers)
        cards = [card for card in names.cards() if _may_see(who, names, card.id)]
        body = model_lists.listing(cards, headers, query)
        codex = "client_version" in query and not model_lists.is_anthropic(headers)
        etag = names.etag() if codex else model_lists.etag(body)
        if headers.get("if-none-match") == etag:
            return Response(status_code=304, headers={"etag": etag})
        return answer(body, headers={"etag": etag})

    @router.get("/v1/models/{name:path}")
    async def model(name: str, request: Request) -> Response:
        headers, card = header_map(request.scope), names.card(name)
        if not _may_see(caller(request.scope, headers), names, name):
            raise model_lists.unknown(name, ())
        return answer(model_lists.lookup([card], name, headers))

    return router


def _may_see(who: Caller, names: ModelNames, name: str) -> bool:
    """Whether a model is one for the caller; of others it is not told that they are there."""
    return who.may_use((name, names.model(name).spec.name))
