"""The console's page at `/console/`: files that are read once, and have no data in them."""

from __future__ import annotations

import mimetypes
from hashlib import blake2b
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from turns.errors import NotFoundError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Asset:
    """A file of the page."""

    def __init__(self, path: Path) -> None:
        self.body = path.read_bytes()
        kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/html"
        self.type = f"{kind}; charset=utf-8"
        self.tag = f'"{blake2b(self.body, digest_size=8).hexdigest()}"'

    def response(self, request: Request) -> Response:
        headers = HEADERS | {"etag": self.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.type, headers=headers)


def console_page(folder: Path) -> APIRouter:
    """The page: its files are read once."""
    router = APIRouter()
    assets = {path.name: Asset(path) for path in folder.iterdir() if path.suffix != ".md"}

    @router.get("/console")
    async def moved() -> Response:
        return RedirectResponse("console/", status_code=307)

    @router.get("/console/")
    async def page(request: Request) -> Response:
        return assets["index.html"].response(request)

    @router.get("/console/{name}")
    async def asset(request: Request, name: str) -> Response:
        found = assets.get(name)
        if found is None:
            raise NotFoundError(f"the console has no file '{name}'")
        return found.response(request)

    return router
