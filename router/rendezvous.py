"""Rendezvous hashing: the same key finds the same replica, and a leaving one moves only its keys.

What an ingress falls back to when the router actor does not answer in time, and what the policy
`sticky` is made of. Give it the session's key where there is one, else the hash of an early block.
"""

from __future__ import annotations

from collections.abc import Iterable

from xxhash import xxh3_64_intdigest


def rendezvous(key: str | int, replicas: Iterable[str]) -> str:
    """The replica with the highest weight for `key`; their order does not matter.

    Raises ValueError when there is no replica.
    """
    seed = key if isinstance(key, int) else xxh3_64_intdigest(key.encode())
    weights = ((xxh3_64_intdigest(name.encode(), seed), name) for name in replicas)
    best = max(weights, default=None)
    if best is None:
        raise ValueError("no replica to choose from")
    return best[1]
