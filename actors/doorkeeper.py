"""The doorkeeper: from the key that a client shows to who calls.

A record that was read is good for `cache_s` seconds, so a request costs one digest and one
comparison; while the store is away it is good for `stale_s`. A revoked key can therefore be used
that long at most, and on the ingress that revoked it not at all.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from access import keys
from access.caller import ALL, Caller, caller_of
from access.keys import Key, Scope
from actors.reception import owner, shown
from turns.errors import AuthenticationError, ForbiddenError, UnavailableError

LookUp = Callable[[str], Awaitable[Key | None]]
"""A key by its id; raises UnavailableError where it cannot be asked for."""

KNOWN = 10_000
"""Ids that are remembered, those that no key has among them."""

HOW = "send it as `x-api-key` or as `Authorization: Bearer`"
MISSING = f"an API key is needed; {HOW}"
BAD = f"the API key is not valid; {HOW}"
ADMINS = frozenset({*ALL, "admin"})


class Rules(Struct, frozen=True):
    """What is asked of callers. `share`: tenants share their prefixes. Times in seconds."""

    required: bool = False
    share: bool = False
    cache_s: float = 10.0
    stale_s: float = 300.0


class Doorkeeper:
    """One per process. `admins` are the admin's secrets; `clock` gives Unix seconds."""

    def __init__(
        self,
        rules: Rules,
        look_up: LookUp,
        admins: Sequence[str] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.rules = rules
        self._look_up = look_up
        self._admins = tuple(admins)
        self._clock = clock
        self._known: OrderedDict[str, tuple[Key | None, float]] = OrderedDict()
        self._changes = 0

    async def caller(self, headers: Mapping[str, str], scope: Scope | None) -> Caller:
        """Who calls, and may do what the scope stands for. Raises AuthenticationError,
        ForbiddenError, UnavailableError.
        """
        secret = shown(headers)
        if secret and any([keys.same(secret, one) for one in self._admins]):  # noqa: C419 - all, always
            return Caller(owner=owner(headers), key="admin", scopes=ADMINS)
        if scope == "admin" and not self._admins:
            raise ForbiddenError("there is no admin here: set TREADLE_ADMIN_KEY at the server")
        if scope is None or not self.rules.required:
            if scope == "admin":
                raise AuthenticationError("the admin key is not valid")
            return Caller(owner=owner(headers))
        found = await self._good(secret)
        caller = caller_of(found, share=self.rules.share)
        caller.need(scope)
        return caller

    def forget(self, key_id: str) -> None:
        """The key has changed; what is being looked up just now is not remembered."""
        self._changes += 1
        self._known.pop(key_id, None)

    async def _good(self, secret: str) -> Key:
        parts = keys.read(secret)
        if parts is None:
            raise AuthenticationError(BAD if secret else MISSING)
        key_id, own = parts
        key = await self._record(key_id)
        if not keys.good(key, own, self._clock()) or key is None:
            raise AuthenticationError(BAD)
        return key

    async def _record(self, key_id: str) -> Key | None:
        now = self._clock()
        known, at = self._known.get(key_id, (None, -1e18))
        if now - at < self.rules.cache_s:
            return known
        changes = self._changes
        try:
            found = await self._look_up(key_id)
        except UnavailableError:
            if known is not None and now - at < self.rules.stale_s:
                return known
            raise
        if changes != self._changes:
            return found
        self._known[key_id] = (found, now)
        self._known.move_to_end(key_id)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return found
