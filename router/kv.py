"""KV events: what an engine says of its prefix cache, and the words it says it in.

Wire form: msgpack arrays with a leading tag. Hashes are the engine's own and mean something only
beside the replica they came from; the index keys on `token_ids` and the chain of parents.
A replica may work that out itself (`router.holdings`) and send `KvHeld`.
"""

from __future__ import annotations

from msgspec import Struct


class KvStored(Struct, frozen=True, array_like=True, tag=0):
    """Blocks entered the prefix cache: `token_ids` of whole blocks that follow block `parent`."""

    block_hashes: list[int]
    parent: int | None
    token_ids: list[int]
    block_size: int
    salt: str = ""
    lora: str = ""
    extras: list[str] | None = None
    """Per block: what besides its tokens it was computed from (images), "" for nothing."""


class KvRemoved(Struct, frozen=True, array_like=True, tag=1):
    block_hashes: list[int]


class KvCleared(Struct, frozen=True, array_like=True, tag=2):
    pass


class KvHeld(Struct, frozen=True, array_like=True, tag=3):
    """`KvStored` with our names of the blocks beside the engine's: nothing is left to hash."""

    block_hashes: list[int]
    ours: list[int]


KvEvent = KvStored | KvRemoved | KvCleared | KvHeld
