"""Trajectories as MCP resources: `trj://{handle}/{synopsis|rows|events}{?offset,limit}`."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import mcp_types as types
import msgspec

from toolruns.gateway.caller import Caller
from toolruns.gateway.drilldown import Drilldown
from toolruns.rows.handles import UnknownHandleError

PARTS = {
    "synopsis": "What a stream's rows sum up to.",
    "rows": "Rows kept under a handle, at most 50 a read.",
    "events": "The record of a stream's life.",
}
MOST_EVENTS = 200


def templates() -> list[types.ResourceTemplate]:
    return [
        types.ResourceTemplate(
            name=f"trajectory {part}",
            uri_template=f"trj://{{handle}}/{part}{{?offset,limit}}",
            description=description,
            mime_type="application/json",
        )
        for part, description in PARTS.items()
    ]


async def read_resource(uri: str, caller: Caller, drilldown: Drilldown) -> str:
    """The JSON text of a resource. Raises UnknownHandleError for what is not there or theirs."""
    parts = urlsplit(uri)
    part = parts.path.strip("/")
    if parts.scheme != "trj" or part not in PARTS:
        raise UnknownHandleError
    # A URL's host has no case: handles do, so it is read from the text itself.
    handle = uri.removeprefix("trj://").split("/", 1)[0]
    record = await drilldown.use(handle, caller)
    query = parse_qs(parts.query)
    offset, limit = _number(query, "offset", 0), _number(query, "limit", 50)
    if part == "rows":
        found = await drilldown.page(record, offset, min(limit, 50))
        body: Any = {"rows": found.rows, "more": found.more}
    elif part == "events":
        entries = (await drilldown.events(record))[offset : offset + min(limit, MOST_EVENTS)]
        body = {"events": entries}
    else:
        body = record.snapshot
    return msgspec.json.encode(body).decode()


def _number(query: dict[str, list[str]], name: str, default: int) -> int:
    text = query.get(name, [""])[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default  # noqa: PLR2004 (fits any integer)
