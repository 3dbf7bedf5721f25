"""Rows of a SQLite query, read lazily from a database opened read-only."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from toolruns.signals import Chunk, Exhausted
from toolruns.sources.records import Records
from toolruns.sources.source import Answer, SourceError

_ALLOWED = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_FULL_TEXT = frozenset(
    {(sqlite3.SQLITE_UPDATE, "sqlite_master"), (sqlite3.SQLITE_PRAGMA, "data_version")}
)
"""What declaring a full-text table asks for inside; the file stays read-only all the same."""
_BANNED_FUNCTIONS = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})


class SqliteQuery:
    """A Cursor. `parameters` fill the named places (`:name`) of the statement."""

    def __init__(self, path: Path, sql: str, parameters: dict[str, Any] | None = None) -> None:
        self._path = path
        self._sql = sql
        self._parameters = parameters or {}
        self._connection: sqlite3.Connection | None = None
        self._rows: sqlite3.Cursor | None = None
        self._records = Records()

    def open(self) -> None:
        try:
            # Interrupt and close may come from another thread than the query's.
            self._connection = sqlite3.connect(
                f"{self._path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
            self._connection.set_authorizer(_authorise)
            self._rows = self._connection.execute(self._sql, self._parameters)
        except sqlite3.Error as error:
            raise SourceError(_told(error)) from None
        if self._rows.description is None:
            message = "the statement gives no rows; only a SELECT is allowed"
            raise SourceError(message)

    def read(self, rows: int) -> Answer:
        if self._rows is None:
            return Exhausted()
        try:
            fetched = self._rows.fetchmany(rows)
        except sqlite3.Error as error:
            raise SourceError(_told(error)) from None
        if not fetched:
            return Exhausted()
        names = unique([column[0] for column in self._rows.description])
        batch = self._records.columns(names, list(zip(*fetched, strict=True)))
        return Chunk(batch, batch.nbytes, last=len(fetched) < rows)

    def interrupt(self) -> None:
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def unique(names: list[str]) -> list[str]:
    """Column names with repeats told apart: `id`, `id_2`."""
    taken: dict[str, int] = {}
    found = []
    for name in names:
        taken[name] = taken.get(name, 0) + 1
        found.append(name if taken[name] == 1 else f"{name}_{taken[name]}")
    return found


def _authorise(action: int, one: str | None, other: str | None, *_rest: Any) -> int:
    """Reading is allowed; no pragma, no attached file, no function that reaches out."""
    if (action, one) in _FULL_TEXT:
        return sqlite3.SQLITE_OK
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (other or "").lower() in _BANNED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _told(error: sqlite3.Error) -> str:
    text = str(error)
    if "prohibited" in text or "not authorized" in text:
        return f"only reading is allowed: {text}"
    return f"SQLite refused the query: {text}"
