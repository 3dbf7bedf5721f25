"""Allowances: what each key uses here, and whether one more turn of it may come in.

A tap as well: that a turn is over it hears as everybody does, exactly once, so nothing of it can
stay open. The other ingresses' use is told to it; keys without an allowance cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from msgspec import msgpack

from access.caller import Caller
from access.keys import UNLIMITED
from access.usage import Usage, admit, entered, left, rolled
from actors.gossip import Gossip
from observe.seen import TurnEnded, TurnFailed
from observe.taps import Quiet
from turns.events import Usage as Tokens

TOPIC = "usage"
_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(dict[str, Usage]).decode


class Allowances(Quiet):
    """One per ingress. `clock` gives Unix seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._gossip: Gossip | None = None
        self._heard: Mapping[str, bytes] = {}
        self._elsewhere: list[dict[str, Usage]] = []
        self._clock = clock
        self._usages: dict[str, Usage] = {}
        self._open: dict[str, str] = {}

    def enter(self, caller: Caller, turn: str) -> None:
        """A turn comes in. Raises RateLimitedError where the key has used what it may."""
        if caller.allowance == UNLIMITED:
            return
        now, usage = self._clock(), self._usages.get(caller.key, Usage())
        elsewhere = [theirs.get(caller.key, Usage()) for theirs in self._others()]
        admit(caller.allowance, [usage, *elsewhere], now)
        self._usages[caller.key] = entered(usage, now)
        self._open[turn] = caller.key

    def leave(self, turn: str, tokens: int = 0) -> None:
        """A turn is over, if it was open."""
        key = self._open.pop(turn, None)
        if key is not None:
            self._usages[key] = left(self._usages[key], tokens, self._clock())

    def turn_ended(self, seen: TurnEnded) -> None:
        self.leave(seen.names.turn, _cost(seen.usage))

    def turn_failed(self, seen: TurnFailed) -> None:
        self.leave(seen.names.turn, _cost(seen.usage))

    def share(self, gossip: Gossip) -> None:
        """From now on, count with the other ingresses."""
        gossip.tell(TOPIC, self._told)
        self._gossip = gossip

    def _told(self) -> bytes:
        usages = self.usages()
        return _encode(usages) if usages else b""

    def _others(self) -> list[dict[str, Usage]]:
        """Read once a beat, not once a turn."""
        if self._gossip is not None and (heard := self._gossip.heard(TOPIC)) is not self._heard:
            self._heard, self._elsewhere = heard, [_decode(words) for words in heard.values()]
        return self._elsewhere

    def usages(self) -> dict[str, Usage]:
        """What each key uses here now; keys that use nothing are forgotten."""
        now = self._clock()
        rolls = {key: rolled(usage, now) for key, usage in self._usages.items()}
        self._usages = {key: usage for key, usage in rolls.items() if usage != Usage(usage.window)}
        return dict(self._usages)


def _cost(usage: Tokens) -> int:
    """What a limit counts: prompt tokens that no cache held, and what was generated."""
    return max(0, usage.input - usage.cached) + usage.output
