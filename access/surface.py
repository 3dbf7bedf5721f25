"""What a request is for, by its path: which scope its caller needs. Data, and one look-up."""

from __future__ import annotations

from access.keys import Scope

OPEN = frozenset({"/", "/health"})
"""For load balancers: these say nothing but that somebody is there."""

PLACES: tuple[tuple[str, Scope | None], ...] = (
    ("/v1/treadle/admin", "admin"),
    ("/metrics", "metrics"),
    ("/console/api", "console"),
    ("/console", None),  # the page itself, which has no data in it
)
"""The first that a path lies below decides; all else is for turns."""


def scope_for(path: str) -> Scope | None:
    """The scope that is needed at a path; None where nobody is asked for a key."""
    if path in OPEN:
        return None
    for place, scope in PLACES:
        if path == place or path.startswith(f"{place}/"):
            return scope
    return "turns"
