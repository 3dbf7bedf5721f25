"""Rows of a PostgreSQL query through a server-side cursor: the server computes what is fetched."""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg

from toolruns.signals import Chunk, Exhausted
from toolruns.sources.records import Records
from toolruns.sources.source import Answer, SourceError
from toolruns.sources.sqlite_query import unique

_SESSION = (
    "SET TRANSACTION READ ONLY",
    # Prefer plans that give first rows soon: most runs stop long before the end.
    "SET LOCAL cursor_tuple_fraction = 0.1",
    "SET LOCAL lock_timeout = '2s'",
)


class PostgresQuery:
    """A Cursor. Read-only by its transaction; give it a role that may only read besides.

    `statement_seconds` bounds every single fetch on the server's side.
    """

    def __init__(
        self,
        dsn: str,
        sql: str,
        parameters: dict[str, Any] | None = None,
        *,
        statement_seconds: float = 60.0,
    ) -> None:
        self._dsn = dsn
        self._sql = sql
        self._parameters = parameters
        self._seconds = statement_seconds
        self._connection: psycopg.Connection[Any] | None = None
        self._rows: psycopg.ServerCursor[Any] | None = None
        self._records = Records()

    def open(self) -> None:
        try:
            self._connection = psycopg.connect(
                self._dsn, connect_timeout=5, application_name="treadle"
            )
            for statement in _SESSION:
                self._connection.execute(statement)
            timeout = int(self._seconds * 1000)
            self._connection.execute(
                "SELECT set_config('statement_timeout', %s, true)", [f"{timeout}ms"]
            )
            self._rows = psycopg.ServerCursor(self._connection, "treadle_rows")
            # DECLARE takes one SELECT or VALUES and nothing else: that is the statement check.
            self._rows.execute(self._sql, self._parameters)
        except psycopg.Error as error:
            raise SourceError(_told(error)) from None

    def read(self, rows: int) -> Answer:
        if self._rows is None:
            return Exhausted()
        try:
            fetched = self._rows.fetchmany(rows)
        except psycopg.Error as error:
            raise SourceError(_told(error)) from None
        if not fetched:
            return Exhausted()
        names = unique([column.name for column in self._rows.description or ()])
        batch = self._records.columns(names, list(zip(*fetched, strict=True)))
        return Chunk(batch, batch.nbytes, last=len(fetched) < rows)

    def interrupt(self) -> None:
        if self._connection is not None and self._connection.info.transaction_status == (
            psycopg.pq.TransactionStatus.ACTIVE
        ):
            self._connection.cancel_safe(timeout=CANCEL_WITHIN)

    def close(self) -> None:
        if self._connection is None:
            return
        with contextlib.suppress(psycopg.Error):  # a cancelled statement may have taken it along
            if self._rows is not None:
                self._rows.close()
        self._connection.close()


CANCEL_WITHIN = 0.15


def _told(error: psycopg.Error) -> str:
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        return "the database cannot be reached"  # its address is none of the model's business
    return f"PostgreSQL refused the query: {first[:300]}"
