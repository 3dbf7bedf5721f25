"""Tools as an operator declares them, in the cluster's YAML.

    tools:
      - name: orders
        description: Orders of the shop.
        source: {kind: postgres, dsn: "${SHOP_DSN}", sql: "SELECT * FROM t WHERE shop = %(shop)s"}
        parameters: {properties: {shop: {type: string}}, required: [shop]}
        contract: {mode: chunked, columns: [{name: user_id, key: true}]}

A source without `sql` takes the model's own, as the argument `sql`. `${NAME}` is read from the
environment, so that no secret stands in the file. Unknown fields are errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from toolruns.contract import Cadence, Column, Contract, Defaults, Mode, Ordering, Unit
from toolruns.sources.documents import Document
from toolruns.sources.duckdb_query import DuckdbQuery
from toolruns.sources.http_pages import HttpApi, HttpPages
from toolruns.sources.mcp_pages import McpPages, McpTool
from toolruns.sources.polled import Polled
from toolruns.sources.postgres_query import PostgresQuery
from toolruns.sources.source import Cursor, InThread, Source
from toolruns.sources.sqlite_query import SqliteQuery
from toolruns.sources.tail import FileTail, RedisStream
from toolruns.tool import Tool

Arguments = dict[str, Any]
SQL = {"type": "string", "maxLength": 20_000, "description": "One SELECT statement."}


class Query(Struct, tag_field="kind", forbid_unknown_fields=True, kw_only=True):
    """What every kind of database has. Without `sql` the model writes the statement."""

    sql: str = ""

    def cursor(self, sql: str, parameters: Arguments) -> Cursor:
        raise NotImplementedError

    def open(self, arguments: Arguments, cursor: str) -> Source:
        own = dict(arguments)
        return InThread(self.cursor(self.sql or str(own.pop("sql")), own))


class Sqlite(Query, tag="sqlite", kw_only=True):
    path: str

    def cursor(self, sql: str, parameters: Arguments) -> Cursor:
        return SqliteQuery(Path(self.path), sql, parameters)


class Duckdb(Query, tag="duckdb", kw_only=True):
    path: str

    def cursor(self, sql: str, parameters: Arguments) -> Cursor:
        return DuckdbQuery(Path(self.path), sql, parameters)


class Postgres(Query, tag="postgres", kw_only=True):
    dsn: str

    def cursor(self, sql: str, parameters: Arguments) -> Cursor:
        return PostgresQuery(self.dsn, sql, parameters or None)


class Growing(Struct, tag_field="kind", tag="growing", forbid_unknown_fields=True, kw_only=True):
    """A table that grows: `query` has the places `cursor` and `rows`, `key` is the column."""

    query: Sqlite | Duckdb | Postgres
    key: str
    start: int | str = 0

    def open(self, arguments: Arguments, cursor: str) -> Source:
        return Polled(
            lambda places: self.query.cursor(self.query.sql, {**arguments, **places}),
            self.key,
            cursor=cursor,
            start=self.start,
        )


class Http(Struct, tag_field="kind", tag="http", forbid_unknown_fields=True, kw_only=True):
    api: HttpApi

    def open(self, arguments: Arguments, cursor: str) -> Source:
        return HttpPages(self.api, arguments, cursor)


class Mcp(Struct, tag_field="kind", tag="mcp", forbid_unknown_fields=True, kw_only=True):
    url: str
    upstream: McpTool

    def open(self, arguments: Arguments, cursor: str) -> Source:
        return McpPages(self.url, self.upstream, arguments, cursor)


class Documents(
    Struct, tag_field="kind", tag="documents", forbid_unknown_fields=True, kw_only=True
):
    """Files below `folder`; the model names one with the argument `name`."""

    folder: str

    def open(self, arguments: Arguments, cursor: str) -> Source:
        return InThread(Document(Path(self.folder), str(arguments["name"]), int(cursor or 1)))


class Tail(Struct, tag_field="kind", tag="tail", forbid_unknown_fields=True, kw_only=True):
    path: str
    from_start: bool = False

    def open(self, arguments: Arguments, cursor: str) -> Source:
        return FileTail(Path(self.path), cursor, from_start=self.from_start)


class Stream(
    Struct, tag_field="kind", tag="redis_stream", forbid_unknown_fields=True, kw_only=True
):
    url: str
    stream: str

    def open(self, arguments: Arguments, cursor: str) -> Source:
        import redis.asyncio as redis  # noqa: PLC0415 (only this kind needs it)

        make: Callable[[], Any] = lambda: redis.from_url(self.url)  # noqa: E731 (one expression)
        return RedisStream(make, self.stream, cursor)


Kind = Sqlite | Duckdb | Postgres | Growing | Http | Mcp | Documents | Tail | Stream

MODES: dict[type[Any], Mode] = {
    Growing: "unbounded",
    Tail: "unbounded",
    Stream: "unbounded",
    Http: "paginated",
    Mcp: "paginated",
    Documents: "paginated",
}
RESUMABLE = (Growing, Tail, Stream, Http, Mcp, Documents)
UNITS: dict[type[Any], Unit] = {Documents: "page", Tail: "line", Http: "record", Mcp: "record"}


class Promise(Struct, forbid_unknown_fields=True, kw_only=True):
    """The contract as far as the operator says it; the rest follows from the kind of source."""

    mode: Mode | None = None
    unit: Unit | None = None
    ordering: Ordering = "none"
    columns: tuple[Column, ...] = ()
    synopsis: Cadence = field(default_factory=Cadence)
    defaults: Defaults = field(default_factory=Defaults)
    handle_ttl_seconds: float = 900.0


class Declared(Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    source: Kind
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    contract: Promise = field(default_factory=Promise)

    def tool(self) -> Tool:
        kind, promise = type(self.source), self.contract
        contract = Contract(
            mode=promise.mode or MODES.get(kind, "chunked"),
            unit=promise.unit or UNITS.get(kind, "row"),
            ordering=promise.ordering,
            columns=promise.columns,
            resumable=kind in RESUMABLE,
            synopsis=promise.synopsis,
            defaults=promise.defaults,
            handle_ttl_seconds=promise.handle_ttl_seconds,
        )
        return Tool(self.name, self.description, contract, self.source.open, self._parameters())

    def _parameters(self) -> dict[str, Any]:
        properties = dict(self.parameters.get("properties", {}))
        required = list(self.parameters.get("required", []))
        if isinstance(self.source, Query) and not self.source.sql:
            properties, required = {"sql": SQL, **properties}, ["sql", *required]
        if isinstance(self.source, Documents):
            name = {"type": "string", "description": "Name of a document."}
            properties, required = {"name": name, **properties}, ["name", *required]
        return {"type": "object", "properties": properties, "required": required}


class Declaration(Struct, forbid_unknown_fields=True, kw_only=True):
    tools: list[Declared]


class DeclarationError(ValueError):
    """The declaration cannot be used; the message names the field and says what is wrong."""


def load(text: str, environment: Mapping[str, str] | None = None) -> list[Tool]:
    """The tools of a declaration. Raises DeclarationError."""
    names = os.environ if environment is None else environment
    try:
        declaration = msgspec.yaml.decode(text, type=dict[str, Any])
        declared = msgspec.convert(_filled(declaration, names), Declaration).tools
    except (msgspec.MsgspecError, KeyError) as error:
        message = f"tools: {error}"
        raise DeclarationError(message) from None
    seen: set[str] = set()
    for each in declared:
        if not _NAME.fullmatch(each.name) or each.name.startswith("stream_") or each.name in seen:
            message = f"tools: {each.name!r} is taken, reserved or no tool name"
            raise DeclarationError(message)
        seen.add(each.name)
    return [each.tool() for each in declared]


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_PLACE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """Every `${NAME}` in place; a name that is not set is a KeyError."""
    if isinstance(value, str):
        return _PLACE.sub(lambda found: names[found.group(1)], value)
    if isinstance(value, dict):
        return {key: _filled(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, names) for item in value]
    return value
