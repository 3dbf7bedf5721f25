"""The prefix doctor over HTTP: `GET /v1/treadle/turns/{id}/prefix`, optionally `?before=<id>`.

Ids are those of the response (`msg_…`, `resp_…`, `chatcmpl-…`) or of the turn itself. Only who
asked a turn can see it, for as long as it is kept (`store.past_ttl_s`), from any ingress.
"""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request, Response

from actors.ingress import Ingress
from actors.page_requests import answer, asked


def prefix_pages(ingress: Ingress) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/treadle/turns/{turn}/prefix")
    async def prefix(request: Request, turn: str, before: str = "") -> Response:
        owner = asked(request).owner
        earlier, found = await ingress.prefixes.report(owner, turn, before)
        said = {"turn": turn, "before": earlier, "whole": found is None, "break": found}
        return answer(msgspec.json.encode(said))

    return router
