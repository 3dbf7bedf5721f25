"""The secret that a cluster makes for itself, where its operator gives none.

It is kept in the store, so that what was sealed with it can be opened by every ingress and after
a restart. Whoever makes it must be alone in doing so (the store deployment is).
"""

from __future__ import annotations

import secrets

from sessions.records import SECRET
from sessions.store import Store, write

NAME = "seal"
TTL = 365 * 24 * 3600.0
"""Seconds that a secret nobody asks for lives."""


async def cluster_secret(store: Store) -> str:
    """The cluster's secret, made now if there is none. UnavailableError as the store has it."""
    (known,) = await store.get(SECRET, "", NAME, renew=TTL)
    if known is None:
        known = secrets.token_hex(32)
        await store.put(write(SECRET, "", NAME, known, ttl=TTL))
    return known
