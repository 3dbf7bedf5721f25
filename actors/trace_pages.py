"""Turns, looked at one by one: `GET /v1/treadle/turns/{id}/trace`.

Ids are those of the response or of the turn itself. Only who asked a turn can see it, and only
while the ingress that ran it remembers it. No content is shown: it is not kept where this looks.
"""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response

from actors.page_requests import answer, asked
from observe.turn_traces import LATEST, TurnTraces, encode
from turns.errors import NotFoundError


def trace_pages(traces: TurnTraces) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/treadle/turns/{turn}/trace")
    async def trace(request: Request, turn: str) -> Response:
        found = traces.find(asked(request).owner, re.split("[_-]", turn)[-1])
        if found is None:
            raise NotFoundError(f"no turn '{turn}' among the last {LATEST} of this ingress")
        return answer(encode(found))

    return router
