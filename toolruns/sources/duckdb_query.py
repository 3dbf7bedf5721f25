"""Rows of a DuckDB query over one read-only database file, streamed as Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from toolruns.signals import Chunk, Exhausted
from toolruns.sources.source import Answer, SourceError

VECTOR = 2048
"""What DuckDB computes at a time, and so the least it has read when it gives a row."""


class DuckdbQuery:
    """A Cursor. The database can reach no file but its own, and its settings are locked."""

    def __init__(
        self,
        path: Path,
        sql: str,
        parameters: dict[str, Any] | None = None,
        *,
        memory: str = "1GB",
        threads: int = 2,
    ) -> None:
        self._path = path
        self._sql = sql
        self._parameters = parameters or {}
        self._memory = memory
        self._threads = threads
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._reader: Any = None
        self._left: Any = None

    def open(self) -> None:
        try:
            self._connection = duckdb.connect(
                str(self._path), read_only=True, config=self._config()
            )
            statements = self._connection.extract_statements(self._sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                message = "exactly one SELECT statement is allowed"
                raise SourceError(message)
            self._reader = self._connection.sql(
                statements[0].query, params=self._parameters or None
            ).to_arrow_reader(VECTOR)
        except (duckdb.Error, RuntimeError) as error:
            raise SourceError(_told(error)) from None

    def read(self, rows: int) -> Answer:
        """At most `rows`; what a vector has beyond them waits for the next read."""
        if self._left is None or not self._left.num_rows:
            try:
                self._left = self._reader.read_next_batch()
            except StopIteration:
                return Exhausted()
            except (duckdb.Error, RuntimeError, OSError) as error:
                raise SourceError(_told(error)) from None
        batch, self._left = self._left.slice(0, rows), self._left.slice(rows)
        return Chunk(batch, batch.nbytes)

    def interrupt(self) -> None:
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._connection is not None:
            self._connection.close()

    def _config(self) -> dict[str, str | bool | int | float | list[str]]:
        return {
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": self._memory,
            "threads": self._threads,
            "lock_configuration": "true",
        }


def _told(error: Exception) -> str:
    return f"DuckDB refused the query: {str(error).splitlines()[0][:300]}"
