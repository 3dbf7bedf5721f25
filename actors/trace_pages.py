"""Turns, looked at one by one: `GET /v1/treadle/turns/{id}/trace`.

Ids are those of the response or of the turn itself. Only who asked a turn can see it, for as long
as it is kept (`store.past_ttl_s`), from any ingress. No content is shown: there is none in a trace.
"""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response

from actors.page_requests import answer, asked
from actors.turn_notes import TRACE
from observe.turn_traces import encode
from sessions.store import Store
from turns.errors import NotFoundError


def trace_pages(store: Store) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/treadle/turns/{turn}/trace")
    async def trace(request: Request, turn: str) -> Response:
        (found,) = await store.get(TRACE, asked(request).owner, re.split("[_-]", turn)[-1])
        if found is None:
            raise NotFoundError(f"no turn '{turn}' of yours is kept")
        return answer(encode(found))

    return router
