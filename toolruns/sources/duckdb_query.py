"""Rows of a DuckDB query over one read-only database file, streamed as Arrow."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from toolruns.signals import Chunk, Exhausted
from toolruns.sources.duckdb_instances import SHARED, Instance
from toolruns.sources.source import Answer, SourceError

GATHER = 0.01
"""Seconds in which vectors that come fast become one chunk: the larger, the less a row costs."""
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
        self._instance: Instance | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._reader: Any = None
        self._left: Any = None

    def open(self) -> None:
        try:
            self._instance = SHARED.take(self._path, self._memory, self._threads)
            self._connection = self._instance.connect()
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
        found: list[Any] = []
        began, count = time.monotonic(), 0
        while count < rows and (not found or time.monotonic() - began < GATHER):
            part = self._some(rows - count)
            if part is None:
                break
            found.append(part)
            count += part.num_rows
        if not found:
            return Exhausted()
        batch = found[0] if len(found) == 1 else pa.concat_batches(found)
        return Chunk(batch, batch.nbytes)

    def _some(self, rows: int) -> Any:
        if self._left is None or not self._left.num_rows:
            try:
                self._left = self._reader.read_next_batch()
            except StopIteration:
                return None
            except (duckdb.Error, RuntimeError, OSError) as error:
                raise SourceError(_told(error)) from None
        part, self._left = self._left.slice(0, rows), self._left.slice(rows)
        return part

    def interrupt(self) -> None:
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._instance is not None:
            instance, self._instance = self._instance, None
            try:
                if self._connection is not None:
                    instance.leave(self._connection)
            finally:
                SHARED.give(instance)


def _told(error: Exception) -> str:
    return f"DuckDB refused the query: {str(error).splitlines()[0][:300]}"
