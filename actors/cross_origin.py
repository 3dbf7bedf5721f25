"""Cross-origin requests: which web pages of other origins may call. None, unless a setting says so.

Nobody is let in by a cookie here, so credentials are never allowed for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

METHODS = "GET, POST, DELETE, OPTIONS"
EXPOSED = "request-id, x-request-id, retry-after, x-treadle-ignored"
A_DAY = "86400"


class CrossOrigin:
    """`origins` such as `https://app.example`, or `*` for any."""

    def __init__(self, origins: Sequence[str] = ()) -> None:
        self._origins = frozenset(origins)

    def headers(self, asked: Mapping[str, str]) -> dict[str, str]:
        """What a response to this request carries so that the page may read it."""
        origin = asked.get("origin", "")
        if not self._origins or not origin:
            return {}
        if "*" not in self._origins and origin not in self._origins:
            return {"vary": "origin"}
        return {
            "access-control-allow-origin": "*" if "*" in self._origins else origin,
            "access-control-expose-headers": EXPOSED,
            "vary": "origin",
        }

    def preflight(self, method: str, asked: Mapping[str, str]) -> dict[str, str] | None:
        """The headers of the answer to a preflight request; None for any other request."""
        wanted = method == "OPTIONS" and "access-control-request-method" in asked
        if not wanted or not self._origins:
            return None
        allowed = self.headers(asked)
        if "access-control-allow-origin" in allowed:
            allowed |= {
                "access-control-allow-methods": METHODS,
                "access-control-allow-headers": asked.get("access-control-request-headers", "*"),
                "access-control-max-age": A_DAY,
            }
        return allowed
