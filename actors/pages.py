"""Everything over HTTP that is not a turn: models, health, metrics. A FastAPI application."""

from __future__ import annotations

import uuid
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from actors.exchange import header_map
from actors.ingress import Ingress
from protocols import models as model_lists
from protocols.registry import APIS
from turns.errors import InvalidRequestError, NotFoundError, TreadleError

JSON = "application/json"


def pages(ingress: Ingress) -> FastAPI:
    """The application; `ingress` is all that it shows."""
    app = FastAPI(title="treadle", openapi_url="/openapi.json", docs_url=None, redoc_url=None)

    @app.get("/v1/models")
    async def models(request: Request) -> Response:
        headers, query = header_map(request.scope), dict(request.query_params)
        try:
            return Response(model_lists.listing(ingress.cards(), headers, query), media_type=JSON)
        except TreadleError as error:
            return refusal(request, error)

    @app.get("/v1/models/{name:path}")
    async def model(name: str, request: Request) -> Response:
        headers = header_map(request.scope)
        try:
            return Response(model_lists.lookup(ingress.cards(), name, headers), media_type=JSON)
        except TreadleError as error:
            return refusal(request, error)

    @app.get("/health")
    async def health() -> Response:
        ready = all(model.up for model in ingress.models)
        state = b'{"status":"ok"}' if ready else b'{"status":"no engine is up yet"}'
        return Response(state, status_code=200 if ready else 503, media_type=JSON)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(ingress.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        kind = NotFoundError if error.status_code == 404 else InvalidRequestError  # noqa: PLR2004 - HTTP's own number
        message = f"{request.method} {request.url.path}: {error.detail}"
        response = refusal(request, kind(message))
        response.status_code = error.status_code
        return response

    return app


def refusal(request: Request, error: TreadleError) -> Response:
    """An error in the shape that this client reads: Anthropic's when it says so, else OpenAI's."""
    anthropic = "anthropic-version" in request.headers or "/messages" in request.url.path
    api = APIS["messages" if anthropic else "chat"]
    status, headers, body = api.error(error, request_id=uuid.uuid4().hex)
    kept: dict[str, Any] = {k: v for k, v in headers.items() if k.lower() != "content-length"}
    return Response(body, status_code=status, headers=kept)
