"""Keys: how one is spelled, what is kept of it, and whether what a caller shows is one.

Only the digest of a secret is kept. The secret has 256 random bits, so one pass of SHA-256 is
enough, and no key costs a request more than that. The id in the clear finds the record; what is
compared is compared in constant time, an id that nobody has against a digest that nobody has.
"""

from __future__ import annotations

import hmac
import re
from hashlib import blake2b, sha256
from typing import Literal

from msgspec import Struct, field

Scope = Literal["turns", "tools", "metrics", "console", "admin"]
SCOPES: tuple[Scope, ...] = ("turns", "tools", "metrics", "console")
"""What a key may be given. `admin` is the admin key's alone."""

PREFIX = "treadle"
_SPELLED = re.compile(rf"{PREFIX}-([0-9a-f]{{12}})-([A-Za-z0-9_-]{{43}})")
_NOBODY = sha256(b"").digest()


class Allowance(Struct, frozen=True, omit_defaults=True):
    """How much a key may use; None is no limit. Per minute, over a window that slides; tokens are
    those of prompts that no cache held and of answers. `most_priority` and `most_tier` are how
    urgent its turns may be.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_turns: int | None = None
    most_priority: int | None = None
    most_tier: int | None = None


UNLIMITED = Allowance()


class Key(Struct, frozen=True):
    """What is kept of a key. `models` are names or patterns (`qwen*`), none allows all. Times are
    Unix seconds; `expires` 0: never, `revoked` 0: not.
    """

    id: str
    digest: bytes
    tenant: str
    name: str = ""
    scopes: tuple[Scope, ...] = ("turns", "tools")
    models: tuple[str, ...] = ()
    allowance: Allowance = field(default_factory=Allowance)
    created: float = 0.0
    expires: float = 0.0
    revoked: float = 0.0


def spell(key_id: str, secret: str) -> str:
    """The key as its holder has it."""
    return f"{PREFIX}-{key_id}-{secret}"


def read(shown: str) -> tuple[str, str] | None:
    """Id and secret of what a caller shows; None where it is no key of ours."""
    found = _SPELLED.fullmatch(shown)
    return (found[1], found[2]) if found else None


def digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


def good(key: Key | None, secret: str, now: float) -> bool:
    """Whether the secret is the key's, and the key is neither revoked nor out of date."""
    same = hmac.compare_digest(digest(secret), key.digest if key is not None else _NOBODY)
    if key is None or not same or key.revoked:
        return False
    return not key.expires or now < key.expires


def same(shown: str, secret: str) -> bool:
    """Whether two secrets are one, in a time that does not tell how far they agree."""
    return hmac.compare_digest(digest(shown), digest(secret))


def owner_of(tenant: str) -> str:
    """The name under which all that a tenant stores is kept: its keys may come and go."""
    return blake2b(tenant.encode(), digest_size=12, person=b"tenant").hexdigest()
