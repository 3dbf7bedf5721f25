"""Looking into kept rows: a filtered page of them, or one SELECT over the table `rows`.

The SQL is a model's, so it runs as untrusted code: a fresh in-memory database a call, no file, no
network, no extension, settings locked, one thread, bounded memory, time and output. No directory
is allowed either: `allowed_directories` would let COPY write there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
from msgspec import Struct

from toolruns.arrays import as_json
from toolruns.synopsis.render import short
from turns.errors import InvalidRequestError

MAX_ROWS = 50
MAX_BYTES = 8192
LETTERS = 200
LEAST_LETTERS = 12


class DrillLimits(Struct, frozen=True):
    seconds: float = 5.0
    memory: str = "256MB"
    sql_chars: int = 4096


class Page(Struct, frozen=True):
    """Rows as JSON objects. `more` says that the answer was cut, by rows or by bytes."""

    columns: list[str]
    rows: list[dict[str, Any]]
    more: bool = False

    def text(self) -> str:
        """The page as the model reads it; at most `MAX_BYTES` of UTF-8."""
        cut = " (cut: there are more)" if self.more else ""
        head = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}{cut}"
        return "\n".join([head, *(_line(row) for row in self.rows)])


def query(table: Any, sql: str, limits: DrillLimits | None = None) -> Page:
    """One SELECT over `rows`. Raises InvalidRequestError that says what is wrong."""
    limits = limits or DrillLimits()
    if len(sql) > limits.sql_chars:
        message = f"sql is longer than {limits.sql_chars} characters"
        raise InvalidRequestError(message, param="sql")
    return _guarded(table, limits, "sql", lambda con: _one_select(con, sql))


def page(
    table: Any,
    *,
    where: str = "",
    columns: Sequence[str] = (),
    order_by: str = "",
    offset: int = 0,
    limit: int = 20,
    limits: DrillLimits | None = None,
) -> Page:
    """A page of rows. `where` is one SQL condition, `order_by` a column, maybe with ` desc`."""
    limits = limits or DrillLimits()
    names = _known(table, columns) if columns else list(table.schema.names)
    if len(where) > limits.sql_chars:
        message = f"where is longer than {limits.sql_chars} characters"
        raise InvalidRequestError(message, param="where")

    def build(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        rows = con.table("rows")
        if where.strip():
            rows = rows.filter(where)
        if order_by.strip():
            rows = rows.sort(_order(table, order_by))
        rows = rows.select(*(duckdb.ColumnExpression(name) for name in names))
        return rows.limit(max(1, min(limit, MAX_ROWS)) + 1, max(0, offset))

    if not table.schema.names:
        return Page([], [])
    found = _guarded(table, limits, "where", build)
    wanted = max(1, min(limit, MAX_ROWS))
    return Page(found.columns, found.rows[:wanted], more=found.more or len(found.rows) > wanted)


def _guarded(
    table: Any,
    limits: DrillLimits,
    param: str,
    build: Callable[[duckdb.DuckDBPyConnection], duckdb.DuckDBPyRelation],
) -> Page:
    con = _sandbox(limits)
    alarm = threading.Timer(limits.seconds, con.interrupt)
    alarm.daemon = True
    alarm.start()
    try:
        con.register("rows", table)
        relation = build(con)
        fetched = relation.limit(MAX_ROWS + 1).fetchall()
        return _bounded(list(relation.columns), fetched)
    except duckdb.InterruptException:
        message = f"stopped after {limits.seconds:g} s; aggregate less or filter more"
        raise InvalidRequestError(message, param=param) from None
    except (duckdb.Error, RuntimeError) as error:
        message = f"the query was refused: {str(error).splitlines()[0][:300]}"
        raise InvalidRequestError(message, param=param) from None
    finally:
        alarm.cancel()
        con.close()


def _sandbox(limits: DrillLimits) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "temp_directory": "",
            "memory_limit": limits.memory,
            "threads": 1,
            "lock_configuration": "true",
        },
    )


def _one_select(con: duckdb.DuckDBPyConnection, sql: str) -> duckdb.DuckDBPyRelation:
    statements = con.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        message = "exactly one SELECT statement over the table rows is allowed"
        raise InvalidRequestError(message, param="sql")
    return con.sql(statements[0].query)


def _known(table: Any, columns: Sequence[str]) -> list[str]:
    names = list(table.schema.names)
    for column in columns:
        if column not in names:
            message = f"no column {column!r}; columns: {', '.join(names[:24])}"
            raise InvalidRequestError(message, param="columns")
    return list(columns)


def _order(table: Any, order_by: str) -> str:
    column, _, direction = order_by.strip().rpartition(" ")
    if direction.lower() not in {"asc", "desc"} or not column:
        column, direction = order_by.strip(), "asc"
    _known(table, [column.strip()])
    return f"{_quoted(column.strip())} {direction}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _bounded(columns: list[str], fetched: Sequence[Sequence[Any]]) -> Page:
    rows: list[dict[str, Any]] = []
    size = len(f"{MAX_ROWS} rows (cut: there are more)")
    letters = max(LEAST_LETTERS, min(LETTERS, MAX_BYTES // 2 // max(1, len(columns))))
    for values in fetched[:MAX_ROWS]:
        pairs = zip(columns, values, strict=True)
        row = {short(name, 60): _value(value, letters) for name, value in pairs}
        size += len(_line(row).encode()) + 1
        if size > MAX_BYTES:
            if rows:
                return Page(columns, rows, more=True)
            message = f"a single row is larger than {MAX_BYTES} bytes; name fewer columns"
            raise InvalidRequestError(message, param="columns")
        rows.append(row)
    return Page(columns, rows, more=len(fetched) > MAX_ROWS)


def _value(value: Any, letters: int) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return short(value, letters)
    if isinstance(value, list | dict | tuple | bytes):
        return short(as_json(value), letters)
    return short(str(value), letters)


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=str)
