"""A caller: who sent a request, and what that allows."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from msgspec import Struct, field

from access.keys import Allowance, Key, Scope, owner_of
from turns.errors import ForbiddenError

ALL: frozenset[Scope] = frozenset({"turns", "tools", "metrics", "console"})


class Shown(str):
    """The key itself, as it was shown. Nothing that prints or logs it shows it again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'" if self else "''"


NOTHING = Shown()


class Caller(Struct, frozen=True):
    """`owner` owns all that is stored for the caller: nobody else finds it. `salt` keeps its
    prefixes apart from those of others; "" shares them with all who have none. `key` is the id of
    the key that was shown, "" where keys are not asked for; `secret` goes to servers of our own
    that run tools for the caller, and nowhere else.
    """

    owner: str = ""
    key: str = ""
    tenant: str = ""
    scopes: frozenset[Scope] = ALL
    models: tuple[str, ...] = ()
    allowance: Allowance = field(default_factory=Allowance)
    salt: str = ""
    secret: Shown = NOTHING

    def need(self, scope: Scope) -> None:
        """Raises ForbiddenError where the caller may not go there."""
        if scope not in self.scopes:
            raise ForbiddenError(f"this key has not the scope '{scope}'; ask your admin for it")

    def may_use(self, names: Iterable[str]) -> bool:
        """Whether the model that goes by these names may be used."""
        if not self.models:
            return True
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.models)

    def need_model(self, *names: str) -> None:
        """Raises ForbiddenError naming what the key allows; `names[0]` is what was asked for."""
        if not self.may_use(names):
            allowed = ", ".join(self.models)
            raise ForbiddenError(
                f"this key may not use the model '{names[0]}'; it allows {allowed}", param="model"
            )


def caller_of(key: Key, *, share: bool) -> Caller:
    """Who shows that key; `share`: tenants share their prefixes."""
    owner = owner_of(key.tenant)
    return Caller(
        owner=owner,
        key=key.id,
        tenant=key.tenant,
        scopes=frozenset(key.scopes),
        models=key.models,
        allowance=key.allowance,
        salt="" if share else owner,
    )
