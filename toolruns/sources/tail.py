"""Streams without an end: the lines of a growing file, the entries of a Redis stream."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from toolruns.signals import Chunk
from toolruns.sources.records import Records
from toolruns.sources.source import Answer, SourceError

POLL = 0.05
LONGEST_LINE = 64 * 1024
BLOCK_MS = 1000


class FileTail:
    """A Source: rows of `offset` and `line`, or the fields of JSON lines.

    Begins at the end, at the beginning (`from_start`), or at a `cursor` of an earlier run: the
    file's identity and the place behind the last whole line. A file that was replaced or cut is
    read from its beginning.
    """

    def __init__(self, path: Path, cursor: str = "", *, from_start: bool = False) -> None:
        self._path = path
        self._cursor = cursor
        self._from_start = from_start
        self._file: BinaryIO | None = None
        self._at = 0
        self._records = Records()

    async def open(self) -> None:
        self._begin_file(first=True)

    async def read(self, rows: int) -> Answer:
        while True:
            lines = self._lines(rows)
            if lines:
                batch = self._records.batch(lines)
                return Chunk(batch, batch.nbytes, pages=0, cursor=self._place())
            self._follow_rotation()
            await asyncio.sleep(POLL)

    async def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _begin_file(self, *, first: bool) -> None:
        try:
            file = self._path.open("rb")
        except OSError:
            message = "the file to follow is not there"
            raise SourceError(message) from None
        if self._file is not None:
            self._file.close()
        self._file, self._at = file, 0
        inode, _, offset = self._cursor.partition(":")
        size = os.fstat(file.fileno()).st_size
        if first and inode == self._inode() and offset.isdigit() and int(offset) <= size:
            self._at = int(offset)
        elif first and not self._cursor and not self._from_start:
            self._at = size

    def _lines(self, rows: int) -> list[dict[str, Any]]:
        """Whole lines only: what has no newline yet is still being written."""
        if self._file is None:
            return []
        self._file.seek(self._at)
        found: list[dict[str, Any]] = []
        while len(found) < rows:
            line = self._file.readline(LONGEST_LINE)
            if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                break
            found.append(_record(self._at, line))
            self._at += len(line)
        return found

    def _follow_rotation(self) -> None:
        if self._file is None:
            return
        try:
            there = self._path.stat()
        except OSError:
            return  # between two files of a rotation
        size = os.fstat(self._file.fileno()).st_size
        if str(there.st_ino) != self._inode() or size < self._at:
            self._begin_file(first=False)

    def _inode(self) -> str:
        return str(os.fstat(self._file.fileno()).st_ino) if self._file is not None else ""

    def _place(self) -> str:
        return f"{self._inode()}:{self._at}"


def _record(offset: int, line: bytes) -> dict[str, Any]:
    text = line.rstrip(b"\r\n")
    if text.startswith(b"{"):
        try:
            fields = msgspec.json.decode(text)
        except msgspec.DecodeError:
            fields = None
        if isinstance(fields, dict):
            return fields
    return {"offset": offset, "line": text.decode(errors="replace")}


class RedisStream:
    """A Source: the entries of a Redis stream from a `cursor` (an entry id), else from now on.

    `make` gives a `redis.asyncio.Redis` of its own, which is closed with the source.
    """

    def __init__(self, make: Any, stream: str, cursor: str = "") -> None:
        self._make = make
        self._stream = stream
        self._last = cursor or "$"
        self._client: Any = None
        self._records = Records()

    async def open(self) -> None:
        self._client = self._make()
        if self._last == "$":  # "from now" must not move while nothing comes
            found = await self._call(self._client.xrevrange(self._stream, count=1))
            self._last = _text(found[0][0]) if found else "0-0"

    async def read(self, rows: int) -> Answer:
        while True:
            found = await self._call(
                self._client.xread({self._stream: self._last}, count=rows, block=BLOCK_MS)
            )
            if found:
                entries = found[0][1] if isinstance(found, list) else next(iter(found.values()))[0]
                return self._chunk(entries)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    def _chunk(self, entries: Any) -> Chunk:
        self._last = _text(entries[-1][0])
        rows = [
            {"id": _text(key), **{_text(k): _text(v) for k, v in fields.items()}}
            for key, fields in entries
        ]
        batch = self._records.batch(rows)
        return Chunk(batch, batch.nbytes, pages=0, cursor=self._last)

    async def _call(self, answer: Any) -> Any:
        try:
            return await answer
        except (OSError, asyncio.IncompleteReadError) as error:
            message = "the stream's server cannot be reached"
            raise SourceError(message) from error
        except Exception as error:
            message = f"the stream cannot be read: {type(error).__name__}"
            raise SourceError(message) from error


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
