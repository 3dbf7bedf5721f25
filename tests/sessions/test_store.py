"""One suite for every store."""

from __future__ import annotations

import asyncio

import pytest

from sessions.records import (
    CONVERSATION,
    LEDGER,
    REPLY,
    RESPONSE,
    TURNS,
    Kind,
    RecordError,
    SessionRecord,
    SessionSeen,
    StoredReply,
    StoredResponse,
)
from sessions.store import FOREVER, write
from tests.sessions.conftest import Rig
from turns.blocks import Reasoning, Text, ToolCall
from turns.events import Usage
from turns.reply import CutCall
from turns.turn import Hints

REPLY_1 = StoredReply(
    turn="turn-1",
    session="s",
    prompt_hash=2**64 - 1,
    blocks=(
        Reasoning("hm", seal="x"),
        Text("Läuft \U0001f680"),
        ToolCall("call_1", "add", '{"a": 12345678901234567890}'),
        CutCall(ToolCall("call_2", "add", '{"a'), "length"),
    ),
    ids=b"\x00\xff",
    usage=Usage(10, 5, 3, 1),
    stop="length",
    created=1.5,
)
RESPONSE_1 = StoredResponse(
    "resp_1", "responses", "m", 2.0, "completed", b"[]", b"{}", previous="p"
)


def seen(at: float = 1.0, *, owner: str = "o", key: str = "s", **more: object) -> SessionSeen:
    return SessionSeen(owner, key, at, **more)  # type: ignore[arg-type]


async def test_a_session_grows_turn_by_turn(rig: Rig) -> None:
    hints = Hints(priority=3, osl=64)
    first = await rig.store.touch_session(
        seen(1.25, harness="codex", model="m", parent="p", hints=hints), 60
    )
    assert first == SessionRecord("o", "s", 1.25, 1.25, 1, "codex", "m", "p", hints)
    second = await rig.store.touch_session(seen(2.5, model="n", parent="q"), 60)
    assert second == SessionRecord("o", "s", 1.25, 2.5, 2, "codex", "n", "p", hints)
    assert await rig.store.session("o", "s") == second


async def test_each_hint_holds_until_it_is_said_anew(rig: Rig) -> None:
    given = [
        Hints(priority=3, osl=64),
        Hints(deadline_s=9.0, final=True),  # of one turn
        Hints(osl=8, latency_sensitivity=0.25, speculative_prefill=True, retain_s=60),
    ]
    for hints in given:
        last = await rig.store.touch_session(seen(hints=hints), 60)
    assert last.hints == Hints(
        priority=3, osl=8, latency_sensitivity=0.25, speculative_prefill=True, retain_s=60
    )
    assert await rig.store.session("o", "s") == last


async def test_turns_of_a_session_that_come_at_once_are_all_counted(rig: Rig) -> None:
    await asyncio.gather(*(rig.store.touch_session(seen(float(n)), 60) for n in range(20)))
    found = await rig.store.session("o", "s")
    assert found is not None
    assert found.turns == 20


async def test_an_ended_session_is_gone_once(rig: Rig) -> None:
    await rig.store.touch_session(seen(), 60)
    assert await rig.store.end_session("o", "s")
    assert not await rig.store.end_session("o", "s")
    assert await rig.store.session("o", "s") is None


async def test_a_session_lives_on_with_each_turn(rig: Rig) -> None:
    await rig.store.touch_session(seen(), 60)
    rig.advance(40)
    await rig.store.touch_session(seen(), 60)
    rig.advance(40)
    assert await rig.store.session("o", "s") is not None
    rig.advance(20)
    assert await rig.store.session("o", "s") is None
    assert (await rig.store.touch_session(seen(), 60)).turns == 1


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        pytest.param(REPLY, REPLY_1, id="reply"),
        pytest.param(RESPONSE, RESPONSE_1, id="response"),
        pytest.param(LEDGER, b"\x00\x01", id="ledger"),
    ],
)
async def test_records_come_back_as_they_were(rig: Rig, kind: Kind[object], record: object) -> None:
    await rig.store.put(write(kind, "o", "a", record, ttl=60))
    assert await rig.store.get(kind, "o", "b", "a", "a") == [None, record, record]


async def test_put_writes_all_and_over_what_was_there(rig: Rig) -> None:
    await rig.store.put(write(LEDGER, "o", "a", b"old", ttl=60))
    await rig.store.put(
        write(LEDGER, "o", "a", b"new", ttl=60), write(REPLY, "o", "a", REPLY_1, ttl=60)
    )
    assert await rig.store.get(LEDGER, "o", "a") == [b"new"]
    assert await rig.store.get(REPLY, "o", "a") == [REPLY_1]
    await rig.store.put()
    assert await rig.store.get(REPLY, "o") == []


async def test_a_foreign_record_is_as_one_that_never_was(rig: Rig) -> None:
    await rig.store.put(write(RESPONSE, "o", "resp_1", RESPONSE_1, ttl=60))
    await rig.store.touch_session(seen(), 60)
    await rig.store.append(TURNS, "o", "s", ["t"], ttl=60, keep=9)
    for stranger in ("", "p", "o:resp_1", "O"):
        assert await rig.store.get(RESPONSE, stranger, "resp_1") == [None]
        assert await rig.store.delete(RESPONSE, stranger, "resp_1") == 0
        assert await rig.store.session(stranger, "s") is None
        assert not await rig.store.end_session(stranger, "s")
        assert await rig.store.items(TURNS, stranger, "s") == []
        await rig.store.put(write(RESPONSE, stranger, "resp_1", RESPONSE_1, ttl=60))
    assert await rig.store.delete(RESPONSE, "o", "resp_1") == 1
    assert await rig.store.get(RESPONSE, "p", "resp_1") == [RESPONSE_1]


async def test_owners_and_names_cannot_be_confused(rig: Rig) -> None:
    await rig.store.put(write(LEDGER, "a:b", "c", b"1", ttl=60))
    assert await rig.store.get(LEDGER, "a", "b:c") == [None]
    await rig.store.put(write(LEDGER, "a", "ü\n:*\x00", b"2", ttl=60))
    assert await rig.store.get(LEDGER, "a", "ü\n:*\x00", "ü\n:*") == [b"2", None]


async def test_records_end_with_their_time(rig: Rig) -> None:
    await rig.store.put(
        write(LEDGER, "o", "a", b"a", ttl=60), write(LEDGER, "o", "b", b"b", ttl=90)
    )
    rig.advance(60)
    assert await rig.store.get(LEDGER, "o", "a", "b") == [None, b"b"]
    assert await rig.store.delete(LEDGER, "o", "a") == 0


async def test_renewing_gives_what_is_found_more_time(rig: Rig) -> None:
    await rig.store.put(write(LEDGER, "o", "a", b"a", ttl=60))
    rig.advance(50)
    assert await rig.store.get(LEDGER, "o", "a", "b", renew=60) == [b"a", None]
    rig.advance(50)
    assert await rig.store.get(LEDGER, "o", "a", "b") == [b"a", None]


async def test_deleting_counts_what_was_there(rig: Rig) -> None:
    await rig.store.put(write(LEDGER, "o", "a", b"a", ttl=60))
    await rig.store.append(CONVERSATION, "o", "c", [b"{}"], ttl=60, keep=9)
    assert await rig.store.delete(LEDGER, "o", "a", "b", "a") == 1
    assert await rig.store.delete(CONVERSATION, "o", "c") == 1
    assert await rig.store.delete(LEDGER, "o") == 0


async def test_lists_keep_their_order_and_their_last(rig: Rig) -> None:
    await rig.store.append(TURNS, "o", "s", ["1", "2"], ttl=60, keep=3)
    await rig.store.append(TURNS, "o", "s", ["3", "4"], ttl=60, keep=3)
    assert await rig.store.items(TURNS, "o", "s") == ["2", "3", "4"]
    await rig.store.append(TURNS, "o", "s", [], ttl=60, keep=1)
    assert await rig.store.items(TURNS, "o", "s") == ["2", "3", "4"]


async def test_a_list_lives_on_with_each_append(rig: Rig) -> None:
    await rig.store.append(TURNS, "o", "s", ["1"], ttl=60, keep=9)
    rig.advance(40)
    await rig.store.append(TURNS, "o", "s", ["2"], ttl=60, keep=9)
    rig.advance(40)
    assert await rig.store.items(TURNS, "o", "s") == ["1", "2"]
    rig.advance(20)
    assert await rig.store.items(TURNS, "o", "s") == []


@pytest.mark.parametrize("ttl", [0.0, -1.0, float("nan")])
async def test_a_record_without_a_life_is_refused(rig: Rig, ttl: float) -> None:
    with pytest.raises(ValueError, match="more than 0 seconds"):
        await rig.store.put(write(LEDGER, "o", "a", b"", ttl=ttl))
    with pytest.raises(ValueError, match="more than 0 seconds"):
        await rig.store.touch_session(seen(), ttl)
    with pytest.raises(ValueError, match="more than 0 seconds"):
        await rig.store.append(TURNS, "o", "s", ["1"], ttl=ttl, keep=1)
    assert await rig.store.session("o", "s") is None


async def test_what_cannot_be_read_is_said(rig: Rig) -> None:
    await rig.store.put(write(Kind("reply", str), "o", "a", "of another version", ttl=60))
    with pytest.raises(RecordError, match="reply"):
        await rig.store.get(REPLY, "o", "a")


async def test_what_can_be_read_beside_it_comes_with_the_error(rig: Rig) -> None:
    await rig.store.put(
        write(Kind("ledger", str), "o", "bad", "of another version", ttl=60),
        write(LEDGER, "o", "good", b"a", ttl=60),
    )
    for renew in (None, 60):
        with pytest.raises(RecordError, match="ledger") as caught:
            await rig.store.get(LEDGER, "o", "none", "bad", "good", renew=renew)
        assert caught.value.rest == [None, None, b"a"]
    await rig.store.append(TURNS, "o", "s", ["1"], ttl=60, keep=9)
    await rig.store.append(Kind("turns", int), "o", "s", [2], ttl=60, keep=9)
    await rig.store.append(TURNS, "o", "s", ["3"], ttl=60, keep=9)
    with pytest.raises(RecordError, match="turns") as caught:
        await rig.store.items(TURNS, "o", "s")
    assert caught.value.rest == ["1", "3"]


async def test_ping_answers(rig: Rig) -> None:
    await rig.store.ping()


async def test_what_must_not_be_forgotten_lives_for_ever(rig: Rig) -> None:
    await rig.store.put(write(LEDGER, "o", "kept", b"1", ttl=FOREVER))
    await rig.store.put(write(LEDGER, "o", "lost", b"2", ttl=1))
    await rig.store.append(TURNS, "o", "list", ["a"], ttl=30, keep=9)
    await rig.store.append(TURNS, "o", "list", ["b"], ttl=FOREVER, keep=9)
    rig.advance(10**6)
    assert await rig.store.get(LEDGER, "o", "kept", "lost") == [b"1", None]
    assert await rig.store.items(TURNS, "o", "list") == ["a", "b"]
