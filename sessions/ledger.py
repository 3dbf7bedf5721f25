"""The ledger: the exact token ids of replies, so that the next turn replays them verbatim.

A key names a reply in its place (hash of the prompt's token ids and of the canonical reply); who
makes it answers for that. The owner keeps tenants apart even where keys are equal. A reply that is
used lives on: each find renews it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessions.records import LEDGER
from sessions.store import Store, Write, write
from sessions.token_ids import pack, unpack


class Ledger:
    """`ttl` in seconds."""

    def __init__(self, store: Store, *, ttl: float = 7 * 24 * 3600.0) -> None:
        self._store = store
        self.ttl = ttl

    def write(self, owner: str, key: str, ids: Sequence[int]) -> Write:
        """The reply as a write, to be put together with the other records of the turn's end."""
        return write(LEDGER, owner, key, pack(ids), ttl=self.ttl)

    async def find(self, owner: str, keys: Sequence[str]) -> list[list[int] | None]:
        """The token ids of the replies, in the order of `keys`, in one round trip."""
        found = await self._store.get(LEDGER, owner, *keys, renew=self.ttl)
        return [None if packed is None else unpack(packed) for packed in found]
