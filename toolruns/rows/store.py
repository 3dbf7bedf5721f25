"""Rows on disk: an append-only log of lz4 Arrow batches a handle, and the record beside it.

`<root>/<handle>/rows-000.arrows` holds batches of one schema; a batch of another schema begins the
next segment. A segment whose writer died is read up to its last whole batch.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import Struct

from toolruns.rows.handles import UnknownHandleError, is_handle
from toolruns.signals import Note
from toolruns.trajectory import Entry, from_lines, to_line

EVENTS = "events.jsonl"


class StoreFullError(Exception):
    """The rows do not fit; the message says which limit is meant."""


class Limits(Struct, frozen=True):
    """What may be kept: bytes as Arrow has them in memory, and rows."""

    bytes: int = 256 * 1024 * 1024
    rows: int = 5_000_000
    owner_bytes: int = 2 * 1024 * 1024 * 1024


class Reference(Struct, frozen=True):
    """Where a batch lies, and the digest of its rows."""

    segment: int
    batch: int
    digest: str


class Writer:
    """Appends the rows and events of one handle. Not for two threads at once."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._limits = limits
        self._segment = -1
        self._batches = 0
        self._schema: Any = None
        self._sink: Any = None
        self._out: Any = None
        self.bytes = 0
        self.rows = 0

    def check(self, batch: Any) -> None:
        """Raises StoreFullError if the batch does not fit."""
        size = batch.nbytes
        if self.bytes + size > self._limits.bytes:
            limit = self._limits.bytes // 1024**2
            message = f"more than {limit} MB of rows in one call"
            raise StoreFullError(message)
        if self.rows + batch.num_rows > self._limits.rows:
            message = f"more than {self._limits.rows:,} rows in one call"
            raise StoreFullError(message)

    def append(self, batch: Any) -> Reference:
        """Keep a batch. Raises StoreFullError before anything is written."""
        self.check(batch)
        if self._out is None or batch.schema != self._schema:
            self._next_segment(batch.schema)
        self._out.write_batch(batch)
        self._sink.flush()
        self.bytes += batch.nbytes
        self.rows += batch.num_rows
        self._batches += 1
        return Reference(self._segment, self._batches - 1, digest(batch))

    def note(self, entry: Entry) -> None:
        with (self._folder / EVENTS).open("ab") as file:
            file.write(to_line(entry))

    def close(self) -> None:
        if self._out is not None:
            self._out.close()
            self._sink.close()
        self._out = self._sink = None

    def _next_segment(self, schema: Any) -> None:
        self.close()
        self._segment += 1
        self._batches = 0
        self._schema = schema
        path = self._folder / f"rows-{self._segment:03}.arrows"
        self._sink = pa.OSFile(str(path), "wb")
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._out = pa.ipc.new_stream(self._sink, schema, options=options)


class RowStore:
    """The folders of all handles on this machine. Its methods block; callers use a thread."""

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self.root = root
        self.limits = limits or Limits()
        root.mkdir(parents=True, exist_ok=True)

    def writer(self, handle: str) -> Writer:
        return Writer(self._folder(handle), self.limits)

    def batches(self, handle: str) -> Iterator[Any]:
        """The batches in their order, whether or not their writer is done."""
        for path in sorted(self._folder(handle).glob("rows-*.arrows")):
            with pa.OSFile(str(path), "rb") as source:
                try:
                    reader = pa.ipc.open_stream(source)
                except pa.ArrowInvalid:
                    continue  # a segment whose schema was not yet written
                while True:
                    try:
                        yield reader.read_next_batch()
                    except (StopIteration, pa.ArrowInvalid, OSError):
                        break

    def table(self, handle: str) -> Any:
        """All rows as one table; columns that some segments lack are null there."""
        tables = [pa.Table.from_batches([batch]) for batch in self.batches(handle)]
        if not tables:
            return pa.table({})
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowTypeError:
            return pa.concat_tables(
                [_as_text(table) for table in tables], promote_options="default"
            )

    def events(self, handle: str) -> list[Entry]:
        path = self._folder(handle) / EVENTS
        return from_lines(path.read_bytes()) if path.exists() else []

    def note(self, handle: str, note: Note, t_ms: float) -> None:
        """Append an event from outside the run: a drill-down, a result handed over."""
        seen = self.events(handle)
        if not seen:
            return  # nothing was recorded, or it is gone
        at = max(t_ms, seen[-1].t_ms)
        entry = Entry(handle, seen[-1].seq + 1, round(at, 3), note.type, note.data)
        with contextlib.suppress(FileNotFoundError):  # its owner has closed it just now
            file = os.open(self._folder(handle) / EVENTS, os.O_WRONLY | os.O_APPEND)
            with open(file, "ab") as events:  # noqa: PTH123 - a Path would make it anew
                events.write(to_line(entry))

    def drop(self, handle: str) -> None:
        shutil.rmtree(self._folder(handle), ignore_errors=True)

    def _folder(self, handle: str) -> Path:
        if not is_handle(handle):
            raise UnknownHandleError
        return self.root / handle


def digest(batch: Any) -> str:
    """A digest of a batch's schema and values, the same wherever it is computed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as out:
        out.write_batch(batch)
    return hashlib.blake2b(sink.getvalue(), digest_size=16).hexdigest()


def _as_text(table: Any) -> Any:
    """Columns whose type changed between segments have only their text in common."""
    return table.cast(pa.schema([(name, pa.string()) for name in table.schema.names]))
