"""The models, as each kind of client asks for them."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from actors.ingress import Ingress
from actors.page_requests import answer
from actors.reception import header_map
from protocols import models as model_lists


def model_pages(ingress: Ingress) -> APIRouter:
    router = APIRouter()
    names = ingress.names

    @router.get("/v1/models")
    async def models(request: Request) -> Response:
        headers, query = header_map(request.scope), dict(request.query_params)
        body = model_lists.listing(names.cards(), headers, query)
        codex = "client_version" in query and not model_lists.is_anthropic(headers)
        etag = names.etag() if codex else model_lists.etag(body)
        if headers.get("if-none-match") == etag:
            return Response(status_code=304, headers={"etag": etag})
        return answer(body, headers={"etag": etag})

    @router.get("/v1/models/{name:path}")
    async def model(name: str, request: Request) -> Response:
        card = names.card(name)
        return answer(model_lists.lookup([card], name, header_map(request.scope)))

    return router
