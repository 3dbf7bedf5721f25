"""The store in Redis (or Valkey): pipelined, msgpack values, all keys under `treadle:`.

Keys are `treadle:KIND:OWNER:ID`, the owner as a digest of fixed length, so that no id can reach
into another owner's keys. A session is a hash, because two turns of it may come at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import Any, TypeVar

from msgspec import convert, msgpack
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from sessions.records import LASTING, Kind, RecordError, SessionRecord, SessionSeen, lasting
from sessions.store import FOREVER, Write, checked
from turns.errors import UnavailableError
from turns.turn import Hints

T = TypeVar("T")

_PREFIX = "treadle"
_HINTS = [(name, f"hint:{name}".encode()) for name in LASTING]

# `records.touched`, atomically and in one command: a transaction of six costs three times the CPU.
_TOUCH = """
local key = KEYS[1]
redis.call('HSETNX', key, 'created', ARGV[2])
if ARGV[3] ~= '' then redis.call('HSETNX', key, 'parent', ARGV[3]) end
redis.call('HSET', key, unpack(ARGV, 4))
redis.call('HINCRBY', key, 'turns', 1)
redis.call('PEXPIRE', key, ARGV[1])
return redis.call('HGETALL', key)
"""

# Reads and renews a whole conversation's replies; a pipeline of GETEX costs ten times the CPU.
_RENEW = """
local values = redis.call('MGET', unpack(KEYS))
for place = 1, #KEYS do
  if values[place] then redis.call('PEXPIRE', KEYS[place], ARGV[1]) end
end
return values
"""


def _key(kind: str, owner: str, name: str) -> str:
    return f"{_PREFIX}:{kind}:{blake2b(owner.encode(), digest_size=16).hexdigest()}:{name}"


def _ms(ttl: float) -> int:
    return max(1, round(checked(ttl) * 1000))


def _life(ttl: float) -> int | None:
    """None for what lives for ever: under memory pressure the embedded server spares it."""
    return None if ttl == FOREVER else _ms(ttl)


@asynccontextmanager
async def _reached(url: str) -> AsyncIterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise UnavailableError(
            f"Redis at {url} does not serve ({error}): start it, or check REDIS_URL"
        ) from error


class RedisStore:
    """`url` is `redis://`, `rediss://` or `unix://`; connections are made when first needed and a
    broken one is replaced at its next use. No retries here: a turn does not wait for them.
    """

    def __init__(
        self, url: str, *, max_connections: int = 32, connect_timeout: float = 1.0
    ) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=max_connections,
            timeout=5,
            socket_connect_timeout=connect_timeout,
            retry=Retry(NoBackoff(), 0),
        )
        self.url = url.rpartition("@")[2]  # without the password: it gets into messages
        self._redis = Redis.from_pool(pool)
        self._touch = self._redis.register_script(_TOUCH)
        self._renew = self._redis.register_script(_RENEW)

    async def touch_session(self, seen: SessionSeen, ttl: float) -> SessionRecord:
        fields: list[Any] = ["last_seen", repr(seen.at)]
        if seen.harness:
            fields += ["harness", seen.harness]
        if seen.model:
            fields += ["model", seen.model]
        for name, value in lasting(seen.hints).items():
            fields += [f"hint:{name}", msgpack.encode(value)]
        if seen.osl:
            fields += ["osl", seen.osl]
        key = _key("session", seen.owner, seen.key)
        args: list[Any] = [_ms(ttl), repr(seen.at), seen.parent, *fields]
        async with _reached(self.url):
            found: list[bytes] = await self._touch(keys=[key], args=args)
        return _session(seen.owner, seen.key, dict(zip(found[::2], found[1::2], strict=True)))

    async def session(self, owner: str, key: str) -> SessionRecord | None:
        async with _reached(self.url):
            found = await self._redis.hgetall(_key("session", owner, key))
        return _session(owner, key, found) if found else None

    async def end_session(self, owner: str, key: str) -> bool:
        async with _reached(self.url):
            return bool(await self._redis.delete(_key("session", owner, key)))

    async def put(self, *writes: Write) -> bool:
        if not writes:
            return True
        async with _reached(self.url), self._redis.pipeline(transaction=False) as pipe:
            for w in writes:
                value = w.kind.encode(w.record)
                pipe.set(_key(w.kind.name, w.owner, w.name), value, px=_life(w.ttl))
            await pipe.execute()
        return True

    async def get(
        self, kind: Kind[T], owner: str, *ids: str, renew: float | None = None
    ) -> list[T | None]:
        if not ids:
            return []
        keys = [_key(kind.name, owner, name) for name in ids]
        values = await self._values(keys, None if renew is None else _ms(renew))
        return kind.decode_each(values)

    async def _values(self, keys: list[str], expires: int | None) -> list[Any]:
        async with _reached(self.url):
            if expires is None:
                return await self._redis.mget(keys)
            found: list[Any] = await self._renew(keys=keys, args=[expires])
            return found

    async def delete(self, kind: Kind[T], owner: str, *ids: str) -> int:
        if not ids:
            return 0
        async with _reached(self.url):
            return int(await self._redis.delete(*(_key(kind.name, owner, name) for name in ids)))

    async def append(
        self, kind: Kind[T], owner: str, name: str, records: Sequence[T], *, ttl: float, keep: int
    ) -> bool:
        if not records:
            return True
        key, expires = _key(kind.name, owner, name), _life(ttl)
        async with _reached(self.url), self._redis.pipeline(transaction=True) as pipe:
            pipe.rpush(key, *(kind.encode(record) for record in records))
            pipe.ltrim(key, -keep, -1)
            if expires is None:
                pipe.persist(key)
            else:
                pipe.pexpire(key, expires)
            await pipe.execute()
        return True

    async def items(self, kind: Kind[T], owner: str, name: str) -> list[T]:
        async with _reached(self.url):
            values: list[Any] = await self._redis.lrange(_key(kind.name, owner, name), 0, -1)
        return kind.decode_list(values)

    async def ping(self) -> None:
        async with _reached(self.url):
            await self._redis.ping()

    async def close(self) -> None:
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()


def _session(owner: str, key: str, found: Mapping[Any, Any]) -> SessionRecord:
    try:
        return SessionRecord(
            owner=owner,
            key=key,
            created=float(found[b"created"]),
            last_seen=float(found[b"last_seen"]),
            turns=int(found[b"turns"]),
            harness=found.get(b"harness", b"").decode(),
            model=found.get(b"model", b"").decode(),
            parent=found.get(b"parent", b"").decode(),
            hints=convert(
                {name: msgpack.decode(found[at]) for name, at in _HINTS if at in found}, Hints
            ),
            osl=int(found.get(b"osl", 0)),
        )
    except (KeyError, ValueError) as error:
        raise RecordError(f"a stored session cannot be read: {error!r}") from error
