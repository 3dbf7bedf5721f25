"""The keyring: keys in the store. A key is shown once, to who makes it; its digest is kept."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from msgspec.structs import replace

from access import keys
from access.keys import Allowance, Key, Scope
from sessions.records import Kind
from sessions.store import FOREVER, Store, write
from turns.errors import NotFoundError, UnavailableError

KEY = Kind("api_key", Key, needed=True)
IDS = Kind("api_key_ids", str, needed=True)
MOST = 100_000
"""Keys that are listed; of more, those made last."""

NAME = "all"
LOST = "the store did not confirm it; ask again"


class Keyring:
    """`clock` gives Unix seconds."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def add(
        self,
        *,
        tenant: str,
        name: str = "",
        scopes: tuple[Scope, ...] = ("turns", "tools"),
        models: tuple[str, ...] = (),
        allowance: Allowance | None = None,
        days: float = 0.0,
    ) -> tuple[Key, str]:
        """A new key: what is kept of it, and the key itself. It expires after `days`, if given.
        Raises UnavailableError where it could not be kept.
        """
        key_id, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), self._clock()
        key = Key(
            id=key_id,
            digest=keys.digest(secret),
            tenant=tenant,
            name=name,
            scopes=scopes,
            models=models,
            allowance=allowance or Allowance(),
            created=now,
            expires=now + days * 86_400 if days else 0.0,
        )
        await self._keep(key)
        if not await self._store.append(IDS, "", NAME, [key_id], ttl=FOREVER, keep=MOST):
            raise UnavailableError(LOST, retry_after=1)
        return key, keys.spell(key_id, secret)

    async def find(self, key_id: str) -> Key | None:
        """Raises UnavailableError where the store cannot be asked."""
        return (await self._store.get(KEY, "", key_id))[0]

    async def every(self) -> list[Key]:
        """All keys, oldest first, revoked ones too."""
        ids = await self._store.items(IDS, "", NAME)
        found = await self._store.get(KEY, "", *ids) if ids else []
        return [key for key in found if key is not None]

    async def revoke(self, key_id: str) -> Key:
        """End a key for ever. Raises NotFoundError, UnavailableError."""
        key = await self.find(key_id)
        if key is None:
            raise NotFoundError(f"there is no key '{key_id}'")
        if not key.revoked:
            key = replace(key, revoked=self._clock())
            await self._keep(key)
        return key

    async def _keep(self, key: Key) -> None:
        """Nobody may believe in a key that was not kept, or in the end of one that still opens."""
        if not await self._store.put(write(KEY, "", key.id, key, ttl=FOREVER)):
            raise UnavailableError(LOST, retry_after=1)
