from __future__ import annotations

import pytest

from sessions.memory_store import MemoryStore
from sessions.past_turns import EACH, LARGEST, PastTurn, PastTurns, packed, unpacked
from sessions.records import RecordError
from turns.blocks import Message, Reasoning, Text, ToolCall
from turns.turn import Tool, Turn

TURN = Turn(
    "turn_1",
    "messages",
    "m",
    (Message("user", (Text("hi"),)),),
    tools=(Tool("f", parameters={"b": 1, "a": [None, 1.5]}),),
    session="s",
)
PAST = PastTurn(
    TURN, [1, 2, 70_000], [5], (Reasoning("r", "seal"), ToolCall("c", "f", "{}")), 2, 1, 7.5
)


def test_a_turn_comes_back_as_it_was() -> None:
    assert unpacked(packed(PAST)) == PAST


@pytest.mark.parametrize("data", [b"", b"nonsense", packed(PAST)[:-9]])
def test_what_is_no_turn_is_an_error(data: bytes) -> None:
    with pytest.raises(RecordError):
        unpacked(data)


async def test_the_latest_turns_of_a_session_stay_and_are_their_owners() -> None:
    turns = PastTurns(MemoryStore(), ttl=60)
    for n in range(EACH + 2):
        past = PastTurn(TURN, [n], [])
        await turns.keep("me", f"t{n}", "s", packed(past))
    await turns.keep("me", "alone", "", packed(PAST))
    found = await turns.around("me", f"t{EACH}")
    assert [past.ids for past in found] == [[n] for n in range(2, EACH + 2)]
    assert list(await turns.around("me", "alone")) == [PAST]
    assert not await turns.around("you", "alone")
    assert not await turns.around("me", "unheard of")


async def test_a_turn_that_is_too_large_is_not_kept() -> None:
    turns = PastTurns(MemoryStore(), ttl=60)
    await turns.keep("me", "large", "", bytes(LARGEST + 1))
    assert not await turns.around("me", "large")
