from __future__ import annotations

from sessions.ledger import Ledger
from tests.sessions.conftest import Rig


async def test_replies_are_found_in_order_and_by_their_owner_alone(rig: Rig) -> None:
    ledger = Ledger(rig.store, ttl=60)
    await rig.store.put(ledger.write("o", "k1", [1, 2, 3]), ledger.write("o", "k2", []))
    assert await ledger.find("o", ["k2", "nothing", "k1"]) == [[], None, [1, 2, 3]]
    assert await ledger.find("stranger", ["k1"]) == [None]


async def test_a_reply_that_is_used_lives_on(rig: Rig) -> None:
    ledger = Ledger(rig.store, ttl=60)
    await rig.store.put(ledger.write("o", "used", [1]), ledger.write("o", "left", [2]))
    rig.advance(40)
    await ledger.find("o", ["used"])
    rig.advance(40)
    assert await ledger.find("o", ["used", "left"]) == [[1], None]
