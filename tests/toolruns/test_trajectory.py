from __future__ import annotations

import pytest

from tests.toolruns.sources.play import play
from tests.toolruns.streams import BUDGET, budget, contract, stream
from toolruns.contract import Cadence, Contract
from toolruns.endings import Ending
from toolruns.machine import ToolRun
from toolruns.predicate.parse import parse
from toolruns.replay import Fault, Script, replay
from toolruns.rows.handles import new_handle
from toolruns.rows.recorded import RecordError, script_of
from toolruns.rows.store import RowStore
from toolruns.runner import LiveRun
from toolruns.signals import Note
from toolruns.sources.generator import GeneratorSource
from toolruns.trajectory import Entry, Recorder, faults, from_lines, span_of, to_line

CONTRACT = Contract("chunked", synopsis=Cadence(every_chunks=2, every_seconds=60.0))


def test_lines_go_there_and_back():
    recorder = Recorder("trj_1", 10.0)
    entries = [
        recorder.record(Note("trajectory.opened", {"mode": "chunked"}), 10.0),
        recorder.record(Note("chunk.received", {"rows": 3}), 10.25, segment=0),
    ]
    assert from_lines(b"".join(map(to_line, entries)) + b'{"torn') == entries
    assert (entries[1].seq, entries[1].t_ms) == (1, 250.0)
    assert entries[1].data == {"rows": 3, "segment": 0}


def entry(seq, type_, t_ms=0.0):
    return Entry("trj_1", seq, t_ms, type_)


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        pytest.param([], "begins with its one", id="empty"),
        pytest.param([entry(0, "chunk.received")], "begins with its one", id="not-opened"),
        pytest.param(
            [entry(0, "trajectory.opened"), entry(1, "trajectory.opened")],
            "begins with its one",
            id="twice-opened",
        ),
        pytest.param(
            [
                entry(0, "trajectory.opened"),
                entry(1, "trajectory.terminated"),
                entry(2, "trajectory.terminated"),
            ],
            "terminates once",
            id="twice-ended",
        ),
        pytest.param(
            [
                entry(0, "trajectory.opened"),
                entry(1, "trajectory.terminated"),
                entry(2, "chunk.received"),
            ],
            "chunk.received after the end",
            id="after",
        ),
        pytest.param([entry(0, "trajectory.opened"), entry(2, "chunk.received")], "gaps", id="gap"),
        pytest.param(
            [entry(0, "trajectory.opened", 5.0), entry(1, "chunk.received", 4.0)],
            "time goes back",
            id="time",
        ),
    ],
)
def test_broken_records_are_found(entries, fault):
    assert any(fault in found for found in faults(entries))


def test_a_record_is_a_span():
    entries = replay(Script(contract("chunked"), stream(3)), BUDGET).entries
    span = span_of(entries, "orders", call_id="toolu_1", version="2026-07-28")
    assert span["name"] == "execute_tool orders"
    assert span["attributes"] == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "orders",
        "gen_ai.tool.type": "datastore",
        "gen_ai.tool.call.id": "toolu_1",
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "streamtool.trajectory": "trj_replay",
        "streamtool.reason": "exhausted",
        "streamtool.rows": 96,
        "streamtool.complete": True,
    }
    assert [name for name, _, _ in span["events"]] == [e.type for e in entries]


async def recorded(tmp_path, until=None):
    """A run as it really happened, with its rows and its record kept."""

    async def numbers():
        for n in range(300):
            yield {"n": n, "even": n % 2 == 0}

    store, handle = RowStore(tmp_path), new_handle()
    run = ToolRun(handle, CONTRACT, BUDGET, until=parse(until) if until else None)
    live = LiveRun(run, GeneratorSource(numbers), writer=store.writer(handle))
    live.start()
    await live.ended()
    return store, handle


async def test_a_kept_trajectory_replays_as_it_was(tmp_path):
    store, handle = await recorded(tmp_path, "count >= 100")
    again = replay(script_of(store, handle, CONTRACT), BUDGET, until=parse("count >= 100"))
    real = store.events(handle)
    assert [e.type for e in again.entries] == [e.type for e in real]
    assert again.ending is Ending.PREDICATE_SATISFIED
    assert again.view["predicate"]["satisfied_at_row"] == 100


@pytest.mark.parametrize(
    ("until", "fault", "limits", "ending"),
    [
        ("count >= 40", None, {}, Ending.PREDICATE_SATISFIED),
        (None, None, {"rows": 10}, Ending.BUDGET_ROWS),
        (None, None, {}, Ending.EXHAUSTED),
        (None, Fault("drop", 1), {}, Ending.UPSTREAM_TRUNCATED),
        (None, Fault("error", 2), {}, Ending.UPSTREAM_ERROR),
        (None, Fault("stall", 2), {}, Ending.IDLE_TIMEOUT),
        (None, Fault("disconnect", 1), {}, Ending.CLIENT_DISCONNECTED),
    ],
    ids=["predicate", "budget", "whole", "drop", "error", "stall", "disconnect"],
)
async def test_what_would_have_happened(tmp_path, until, fault, limits, ending):
    store, handle = await recorded(tmp_path)
    script = script_of(store, handle, CONTRACT)
    again = replay(script, budget(**limits), until=parse(until) if until else None, fault=fault)
    assert again.ending is ending
    assert faults(again.entries) == []


async def test_changed_rows_are_noticed(tmp_path):
    store, handle = await recorded(tmp_path)
    next((tmp_path / handle).glob("*.arrows")).unlink()
    with pytest.raises(RecordError, match="missing or were changed"):
        script_of(store, handle, CONTRACT)


async def test_a_failing_store_ends_the_run():
    async def numbers():
        while True:
            yield {"n": 1}

    class Broken:
        bytes = 0

        def check(self, batch):
            """Everything fits."""

        def append(self, batch):
            raise OSError

        def note(self, entry):
            raise OSError

        def close(self):
            """Nothing is open."""

    run = ToolRun(new_handle(), CONTRACT, BUDGET)
    live = LiveRun(run, GeneratorSource(numbers), writer=Broken())
    live.start()
    assert (await live.outcome()).ending is Ending.STORE_LIMIT
    await live.ended()


async def test_two_legs_without_a_store():
    async def numbers():
        yield {"n": 1}

    live, _, ending = await play(GeneratorSource(numbers))
    assert ending is Ending.EXHAUSTED
    assert live.kept_bytes == 0
