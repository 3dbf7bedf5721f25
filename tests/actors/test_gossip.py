from __future__ import annotations

import pytest

from access.caller import Caller
from access.keys import Allowance
from actors.allowances import Allowances
from actors.gossip import SILENT_BEATS, Gossip
from tests.sessions.conftest import Rig, rig, valkey  # noqa: F401 - fixtures
from turns.errors import RateLimitedError


async def test_everybody_hears_what_the_others_say_and_forgets_the_silent(
    rig: Rig,  # noqa: F811
) -> None:
    said = {"a": b"one", "b": b"two"}
    a, b = (Gossip(rig.store, name) for name in said)
    a.tell("news", lambda: said["a"])
    b.tell("news", lambda: said["b"])
    await a.once()
    await b.once()
    await a.once()
    assert a.heard("news") == {"b": b"two"}
    assert b.heard("news") == {"a": b"one"}
    said["b"] = b"three"
    await b.once()
    await a.once()
    assert a.heard("news") == {"b": b"three"}
    rig.advance(SILENT_BEATS + 1)
    await a.once()
    assert a.heard("news") == {}


async def test_a_slow_topic_is_told_now_and_then(rig: Rig) -> None:  # noqa: F811
    counts = {"often": 0, "seldom": 0}
    gossip = Gossip(rig.store, "a")

    def say(topic: str) -> bytes:
        counts[topic] += 1
        return b"x"

    gossip.tell("often", lambda: say("often"))
    gossip.tell("seldom", lambda: say("seldom"), every=5)
    for _ in range(10):
        await gossip.once()
    assert counts == {"often": 10, "seldom": 2}
    other = Gossip(rig.store, "b")
    other.tell("seldom", lambda: b"")
    rig.advance(SILENT_BEATS)  # it was told five beats ago
    await other.once()
    assert other.heard("seldom") == {"a": b"x"}
    rig.advance(5)
    await other.once()
    assert other.heard("seldom") == {}


async def test_the_last_word_is_of_every_topic_and_as_things_are_then(rig: Rig) -> None:  # noqa: F811
    in_flight = 3
    leaving, staying = Gossip(rig.store, "a"), Gossip(rig.store, "b")
    leaving.tell("figures", lambda: b"%d" % in_flight, every=5)
    staying.tell("figures", lambda: b"")
    await leaving.once()
    await leaving.once()
    in_flight = 0
    await leaving.end()
    await staying.once()
    assert staying.heard("figures") == {"a": b"0"}


async def test_a_keys_limit_holds_over_all_ingresses(rig: Rig) -> None:  # noqa: F811
    """Memory and Redis alike: what one let in, the others count a beat later."""
    now = 6_000.0
    gossips = [Gossip(rig.store, name) for name in "ab"]
    one, other = (Allowances(clock=lambda: now) for _ in gossips)
    one.share(gossips[0])
    other.share(gossips[1])
    caller = Caller(key="k", allowance=Allowance(requests_per_minute=3, concurrent_turns=3))
    one.enter(caller, "turn-1")
    one.enter(caller, "turn-2")
    for _ in range(2):
        for gossip in gossips:
            await gossip.once()
    other.enter(caller, "turn-3")
    with pytest.raises(RateLimitedError, match="3 turns at a time"):
        other.enter(caller, "turn-4")
    one.leave("turn-1")
    await gossips[0].once()
    await gossips[1].once()
    with pytest.raises(RateLimitedError, match="3 times a minute"):
        other.enter(caller, "turn-4")
    other.enter(Caller(key="k2", allowance=caller.allowance), "turn-5")
    other.leave("never-entered")
