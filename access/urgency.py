"""How urgent the turns of a key may be: what clients say of themselves, held to what was given."""

from __future__ import annotations

from msgspec.structs import replace

from access.keys import Allowance
from turns.turn import Hints

_UNSAID = Hints()


def held(hints: Hints, allowed: Allowance) -> tuple[Hints, list[str]]:
    """The hints as they may be, and the names of those that were said and are higher."""
    bounds = {"priority": allowed.most_priority, "tier": allowed.most_tier}
    less = {
        name: most
        for name, most in bounds.items()
        if most is not None and getattr(hints, name) > most
    }
    said = [name for name in less if getattr(hints, name) != getattr(_UNSAID, name)]
    return (replace(hints, **less), said) if less else (hints, [])
