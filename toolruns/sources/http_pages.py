"""Rows of an HTTP API that gives pages, by declaration: where items are, how the next is named."""

from __future__ import annotations

import asyncio
from typing import Any, Literal
from urllib.parse import quote, urlsplit, urlunsplit

import httpx
import msgspec
from msgspec import Struct, field

from toolruns.signals import Chunk, Exhausted, Truncated
from toolruns.sources.guard import Target, follow, resolve
from toolruns.sources.records import Records, dig
from toolruns.sources.source import Answer, SourceError

RETRIES = 3
LONGEST_WAIT = 5.0
MANY_REQUESTS, UNAVAILABLE = 429, 503
FIRST_ERROR = 400


class Paging(Struct, frozen=True, kw_only=True):
    """How pages follow one another.

    `cursor`: `param` takes what stands at `next` of the page before. `page` and `offset`: `param`
    counts pages from `first`, or rows. `link`: the Link header's rel="next", or a URL at `next`.
    """

    style: Literal["cursor", "page", "offset", "link"] = "cursor"
    param: str = "cursor"
    next: str = "next_cursor"
    first: int = 1
    size_param: str = ""
    size: int = 100


class HttpApi(Struct, frozen=True, kw_only=True):
    """One endpoint. `url` may hold `{argument}` in its path; `items` is a dotted path of the rows.

    `headers` come from the operator and never reach the model. `private` allows loopback and
    private addresses. `truncated` is a dotted path that is true when the API cut its answer.
    """

    url: str
    items: str = ""
    paging: Paging = field(default_factory=Paging)
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    truncated: str = ""
    private: bool = False
    timeout: float = 20.0
    max_page_bytes: int = 16 * 1024 * 1024


class HttpPages:
    """A Source: one page a read. Arguments fill the path's places, the rest go into the query."""

    def __init__(self, api: HttpApi, arguments: dict[str, Any], cursor: str = "") -> None:
        self._api = api
        self._records = Records()
        self._url, rest = _filled(api.url, arguments)
        self._query = {**api.query, **{key: _plain(value) for key, value in rest.items()}}
        self._client: httpx.AsyncClient | None = None
        self._next: str | None = cursor or self._begin()
        self._rows = int(cursor) if cursor and api.paging.style == "offset" else 0

    async def open(self) -> None:
        self._client = httpx.AsyncClient(
            timeout=self._api.timeout, follow_redirects=False, trust_env=False
        )

    async def read(self, rows: int) -> Answer:
        if self._next is None:
            return Exhausted()
        url, query = self._address(self._next)
        response = await self._get(url, query)
        body = _json(response.content)
        items = dig(body, self._api.items)
        if not isinstance(items, list):
            where = self._api.items or "the top"
            message = f"the upstream's page has no list of items at {where}"
            raise SourceError(message)
        if self._api.truncated and dig(body, self._api.truncated) and not items:
            return Truncated("the upstream says that it cut its answer")
        self._rows += len(items)
        self._next = self._following(body, response, len(items))
        batch = self._records.batch(items)
        return Chunk(batch, len(response.content), last=self._next is None, cursor=self._next or "")

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _begin(self) -> str:
        paging = self._api.paging
        return str(paging.first) if paging.style == "page" else ""

    def _address(self, at: str) -> tuple[str, dict[str, str]]:
        paging, query = self._api.paging, dict(self._query)
        if paging.size_param:
            query[paging.size_param] = str(paging.size)
        if paging.style == "link":
            return (follow(self._api.url, self._url, at), {}) if at else (self._url, query)
        if at:
            query[paging.param] = at
        return self._url, query

    def _following(self, body: Any, response: httpx.Response, items: int) -> str | None:
        """Where the next page is; None behind the last one."""
        paging = self._api.paging
        if paging.style == "link":
            link = response.links.get("next", {}).get("url") or dig(body, paging.next)
            return str(link) if link else None
        if paging.style == "cursor":
            found = dig(body, paging.next)
            if found is not None and str(found) == self._next:
                message = "the upstream gave the same cursor twice"
                raise SourceError(message)
            return str(found) if found not in (None, "", False) else None
        if items == 0 or (paging.size_param and items < paging.size):
            return None
        step = int(self._next or paging.first) + 1 if paging.style == "page" else self._rows
        return str(step)

    async def _get(self, url: str, query: dict[str, str]) -> httpx.Response:
        response = await self._once(url, query)
        for attempt in range(RETRIES - 1):
            if response.status_code not in (MANY_REQUESTS, UNAVAILABLE):
                break
            await asyncio.sleep(_pause(response.headers.get("retry-after"), attempt))
            response = await self._once(url, query)
        if response.is_redirect:
            message = "the upstream redirects; declare the address that it redirects to"
            raise SourceError(message)
        if response.status_code >= FIRST_ERROR:
            message = f"the upstream answered {response.status_code} {response.reason_phrase}"
            raise SourceError(message)
        return response

    async def _once(self, url: str, query: dict[str, str]) -> httpx.Response:
        if self._client is None:
            message = "the source is not open"
            raise SourceError(message)
        target = await resolve(url, private=self._api.private)
        request = self._client.build_request(
            "GET",
            _pinned(target),
            params=query or None,
            headers={
                **self._api.headers,
                "host": urlsplit(url).netloc,
                "accept": "application/json",
            },
            extensions={"sni_hostname": target.host},
        )
        try:
            response = await self._client.send(request, stream=True)
            try:
                return await self._whole(response)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            message = f"the upstream cannot be read: {type(error).__name__}"
            raise SourceError(message) from None

    async def _whole(self, response: httpx.Response) -> httpx.Response:
        """The response with its body, decompressed, as far as the limit: bombs end here."""
        pieces, size = [], 0
        async for piece in response.aiter_bytes():
            size += len(piece)
            if size > self._api.max_page_bytes:
                message = f"a page is larger than {self._api.max_page_bytes} bytes"
                raise SourceError(message)
            pieces.append(piece)
        headers = [
            (key, value)
            for key, value in response.headers.multi_items()
            if key not in {"content-encoding", "content-length", "transfer-encoding"}
        ]
        return httpx.Response(
            response.status_code,
            headers=headers,
            content=b"".join(pieces),
            request=response.request,
        )


def _filled(url: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The URL with its places filled; an argument is one path segment, whatever it holds."""
    rest = dict(arguments)
    for name in list(rest):
        place = "{" + name + "}"
        if place in url:
            value = _plain(rest.pop(name))
            if value in {"", ".", ".."}:
                message = f"{name} may not be {value!r}"
                raise SourceError(message)
            url = url.replace(place, quote(value, safe=""))
    return url, {key: value for key, value in rest.items() if value is not None}


def _pinned(target: Target) -> str:
    """The URL with the checked address in place of the name."""
    parts = urlsplit(target.url)
    host = f"[{target.ip}]" if ":" in target.ip else target.ip
    return urlunsplit((parts.scheme, f"{host}:{target.port}", parts.path, parts.query, ""))


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        message = "the upstream's page is not JSON"
        raise SourceError(message) from None


def _pause(retry_after: str | None, attempt: int) -> float:
    try:
        wanted = float(retry_after or "")
    except ValueError:
        wanted = 0.2 * 2**attempt
    return min(wanted, LONGEST_WAIT)
