"""The two books: one in the folder of the rows themselves, one in Redis for several replicas."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from toolruns.rows.handles import Record, is_handle

META = "meta.json"


class FolderBook:
    """Records beside the rows, as `<root>/<handle>/meta.json`; they survive a restart."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._records: dict[str, Record] | None = None

    async def put(self, record: Record) -> None:
        self._all()[record.handle] = record
        await asyncio.to_thread(self._write, record)

    async def get(self, handle: str) -> Record | None:
        return self._all().get(handle)

    async def remove(self, handle: str) -> None:
        self._all().pop(handle, None)
        if is_handle(handle):
            (self._root / handle / META).unlink(missing_ok=True)

    async def of_owner(self, owner: str) -> list[Record]:
        return [record for record in self._all().values() if record.owner == owner]

    async def expired(self, now: float) -> list[Record]:
        return [record for record in self._all().values() if record.expires <= now]

    def _all(self) -> dict[str, Record]:
        if self._records is None:
            self._records = {record.handle: record for record in self._read()}
        return self._records

    def _read(self) -> list[Record]:
        """What an earlier process left. A torn or foreign file is no record."""
        found = []
        for path in self._root.glob(f"trj_*/{META}"):
            try:
                record = msgspec.json.decode(path.read_bytes(), type=Record)
            except (OSError, msgspec.MsgspecError):
                continue
            if is_handle(record.handle) and record.handle == path.parent.name:
                found.append(record)
        return found

    def _write(self, record: Record) -> None:
        folder = self._root / record.handle
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"{META}.new"
        draft.write_bytes(msgspec.json.encode(record))
        draft.replace(folder / META)


class RedisBook:
    """Records in Redis: `trj:<handle>` with an expiry, and the owner's handles in one set.

    `client` is a `redis.asyncio.Redis`. Redis drops what expired by itself, so `expired` gives the
    handles whose record is gone but whose name still stands in the index: their rows can go.
    """

    def __init__(self, client: Any, prefix: str = "trj") -> None:
        self._redis = client
        self._prefix = prefix

    async def put(self, record: Record) -> None:
        key, body = self._key(record.handle), msgspec.json.encode(record)
        # The record outlives its expiry a little, so that a sweep still knows whose rows to drop.
        await self._redis.set(key, body, exat=int(record.expires) + 60)
        await self._redis.sadd(self._owner(record.owner), record.handle)
        await self._redis.zadd(self._index(), {record.handle: record.expires})

    async def get(self, handle: str) -> Record | None:
        body = await self._redis.get(self._key(handle)) if is_handle(handle) else None
        return msgspec.json.decode(body, type=Record) if body else None

    async def remove(self, handle: str) -> None:
        record = await self.get(handle)
        if record is not None:
            await self._redis.srem(self._owner(record.owner), handle)
        await self._redis.delete(self._key(handle))
        await self._redis.zrem(self._index(), handle)

    async def of_owner(self, owner: str) -> list[Record]:
        found = []
        for handle in await self._redis.smembers(self._owner(owner)):
            record = await self.get(_text(handle))
            if record is None:
                await self._redis.srem(self._owner(owner), handle)
            else:
                found.append(record)
        return found

    async def expired(self, now: float) -> list[Record]:
        found = []
        for handle in await self._redis.zrangebyscore(self._index(), "-inf", now):
            record = await self.get(_text(handle))
            found.append(record or _gone(_text(handle), now))
        return found

    def _key(self, handle: str) -> str:
        return f"{self._prefix}:{handle}"

    def _owner(self, owner: str) -> str:
        return f"{self._prefix}:owner:{owner}"

    def _index(self) -> str:
        return f"{self._prefix}:expiry"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _gone(handle: str, now: float) -> Record:
    return Record(handle, "", "", created=now, used=now, expires=now, dies=now, status="ended")
