"""Everything over HTTP that is not a turn: models, counts, stored responses, health, metrics.

A FastAPI application. Each group of pages is a file of its own that gives a router; all of them
raise TreadleError, which is spelled here as the client's API spells it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from actors.ingress import Ingress
from actors.page_requests import JSON, refusal
from protocols.openapi import document
from turns.errors import InvalidRequestError, NotFoundError, TreadleError

INTERNAL = "something went wrong inside the server; the request id finds it in the log"
NOT_FOUND = 404


def pages(
    ingress: Ingress,
    routers: Sequence[APIRouter] = (),
    *,
    figures: Callable[[], Awaitable[bytes]],
) -> FastAPI:
    """The application; `ingress` is all that its own pages show. `figures` is what Prometheus
    scrapes.
    """
    app = FastAPI(title="treadle", openapi_url=None, docs_url=None, redoc_url=None)
    for router in routers:
        app.include_router(router)

    @app.get("/openapi.json")
    async def openapi() -> Response:
        names = tuple(card.id for card in ingress.names.cards())
        return Response(document(names), media_type=JSON)

    @app.api_route("/", methods=["GET", "HEAD"])
    async def root() -> Response:
        return Response(b'{"name":"treadle"}', media_type=JSON)

    @app.get("/health")
    async def health() -> Response:
        ready = all(model.up for model in ingress.models)
        state = b'{"status":"ok"}' if ready else b'{"status":"no engine is up yet"}'
        return Response(state, status_code=200 if ready else 503, media_type=JSON)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(await figures(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.post("/api/event_logging/{rest:path}")
    async def telemetry(rest: str) -> Response:  # noqa: ARG001 - FastAPI hands it in by its name
        """Claude Code's own telemetry, where somebody has pointed it here: taken and not kept."""
        return Response(status_code=204)

    @app.exception_handler(TreadleError)
    async def refused(request: Request, error: TreadleError) -> Response:
        return refusal(request, error)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        kind = NotFoundError if error.status_code == NOT_FOUND else InvalidRequestError
        response = refusal(request, kind(f"{request.method} {request.url.path}: {error.detail}"))
        response.status_code = error.status_code
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(RequestValidationError)
    async def misspelled(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"][1:] or first["loc"]))  # without "query"
        return refusal(request, InvalidRequestError(f"{name}: {first['msg']}", param=name))

    @app.exception_handler(Exception)
    async def defect(request: Request, _: Exception) -> Response:
        return refusal(request, TreadleError(INTERNAL))

    return app
