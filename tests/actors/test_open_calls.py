from __future__ import annotations

import pytest

from actors.open_calls import LARGEST, OPEN_FOR_S, OpenCalls
from sessions.memory_store import MemoryStore
from turns.blocks import Message, Text, ToolCall
from turns.errors import InvalidRequestError
from turns.events import Usage
from turns.reply import Reply
from turns.turn import Turn


def note(calls, name, *, session="", said="", before=0):
    history = tuple(ToolCall(f"old{n}", "t", "{}") for n in range(before))
    messages = (Message("user", (Text(said),)), Message("assistant", history))
    turn = Turn(f"turn-{name}", "messages", "m", messages, session=session)
    calls.note("alice", turn, Reply((ToolCall(name, "t", "{}"),), "tool_use", Usage(7)), 9)


async def test_the_oldest_calls_of_a_process_are_forgotten():
    calls = OpenCalls(2)
    for name in ("a", "b", "c"):
        note(calls, name)
    assert (await calls.find("c", "alice")).usage.input == 7
    with pytest.raises(InvalidRequestError):
        await calls.find("a", "alice")


async def test_another_process_finds_the_call_as_it_was_for_a_while():
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    one, other, late = (OpenCalls(8, store, clock=lambda: 5.0) for _ in range(3))
    note(one, "a", said="x" * 1000)
    await one.settled()
    assert await other.find("a", "alice") == await one.find("a", "alice")
    now[0] = OPEN_FOR_S + 1
    with pytest.raises(InvalidRequestError):
        await late.find("a", "alice")


async def test_what_is_too_large_or_no_record_stays_with_its_process(monkeypatch):
    monkeypatch.setattr("actors.open_calls.LARGEST", 100)
    assert LARGEST > 10**6
    store = MemoryStore()
    one, other = OpenCalls(8, store), OpenCalls(8, store)
    note(one, "a", said="".join(map(chr, range(300, 3000))))
    await one.settled()
    assert await one.find("a", "alice")
    with pytest.raises(InvalidRequestError):
        await other.find("a", "alice")


async def test_calls_that_other_processes_saw_count_as_made():
    """The history of a turn tells of them."""
    calls = OpenCalls(8)
    note(calls, "a", session="s", before=6)
    assert (await calls.find("a", "alice")).made == 7
