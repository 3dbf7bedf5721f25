"""How long replies are: running means by session and by the tool whose result they follow.

A reply to a test run is short, one to "write the module" is long, and a session has its manner: the
two means are averaged where both are known. A session is its owner's alone, and another owner's of
the same name is another. Pure; bounded by the least recently used.
"""

from __future__ import annotations

from collections import OrderedDict

_NEW = 0.3
"""Weight of the latest reply in a mean."""

Key = tuple[str, ...]


class Estimates:
    """At most `bound` sessions and tools together."""

    def __init__(self, bound: int = 20_000) -> None:
        self._bound = bound
        self._means: OrderedDict[Key, float] = OrderedDict()

    def saw(self, owner: str, session: str, tool: str, tokens: int) -> None:
        """A reply had so many tokens; `tool` is "" where it followed no tool result."""
        for key in _keys(owner, session, tool):
            before = self._means.pop(key, None)
            mean = float(tokens) if before is None else before + _NEW * (tokens - before)
            self._means[key] = mean
        while len(self._means) > self._bound:
            self._means.popitem(last=False)

    def expect(self, owner: str, session: str, tool: str, kept: int = 0) -> int | None:
        """Tokens of the next reply, None where nothing is known. `kept` is what was known of the
        session elsewhere, 0 for nothing.
        """
        known = [mean for key in _keys(owner, session, tool) if (mean := self._means.get(key))]
        if kept and ("session", owner, session) not in self._means:
            known.append(float(kept))
        return round(sum(known) / len(known)) if known else None

    def of_session(self, owner: str, session: str) -> int:
        """The session's mean alone, 0 where it is not known."""
        return round(self._means.get(("session", owner, session), 0.0))


def _keys(owner: str, session: str, tool: str) -> list[Key]:
    return ([("session", owner, session)] if session else []) + [("tool", tool)]
