"""The simulator: its engine's laws, its loaders, and that it is the same at every run."""

from __future__ import annotations

import pytest

from benchmarks.sim import figures, traces
from benchmarks.sim.engine import Shape, SimEngine, Work
from benchmarks.sim.fleet import Fleet
from benchmarks.sim.sessions import BLOCK, Context, Habits, generate, walk
from router.kv import KvHeld, KvRemoved
from router.router import Settings

SHAPE = Shape(blocks=64, max_turns=2)
SMALL = Habits(turns=4, head=2048, project=1024, own=512, agents=0.5)


class Told:
    def __init__(self) -> None:
        self.first: dict[str, tuple[int, float]] = {}
        self.over: dict[str, float] = {}

    def __call__(self, _: str, turn: str, cached: int, now: float) -> None:
        if cached >= 0:
            self.first[turn] = (cached, now)
        else:
            self.over[turn] = now


def run(engine: SimEngine) -> None:
    while engine.due < float("inf"):
        engine.complete(engine.due)


def test_an_engine_takes_the_time_that_its_timing_says() -> None:
    told = Told()
    engine, timing = SimEngine("e", SHAPE, told), SHAPE.timing
    engine.add(Work("a", [1, 2, 3, 4], 2000, 11), 1.0)
    run(engine)
    assert told.first["a"] == (0, pytest.approx(1.0 + timing.step_s(0, 2000)))
    assert told.over["a"] == pytest.approx(told.first["a"][1] + 10 * timing.step_s(1, 0))
    assert engine.cache.used == 0


def test_what_is_resident_is_not_computed_again() -> None:
    told = Told()
    engine = SimEngine("e", SHAPE, told)
    engine.add(Work("a", [1, 2, 3], 3 * BLOCK, 1), 0.0)
    run(engine)
    engine.add(Work("b", [1, 2, 3, 4], 4 * BLOCK + 9, 1), 9.0)
    run(engine)
    assert told.first["b"][0] == 3 * BLOCK
    assert engine.prefilled == 4 * BLOCK + 9
    assert [engine.report().running, engine.report().waiting] == [0, 0]


def test_a_turn_that_comes_in_the_middle_of_a_jump_gets_in_at_the_next_step() -> None:
    told = Told()
    engine, timing = SimEngine("e", SHAPE, told), SHAPE.timing
    engine.add(Work("a", [], 10, 1000), 0.0)
    engine.complete(engine.due)
    jump = engine.due
    engine.add(Work("b", [], 10, 1), 0.5)
    assert 0.5 <= engine.due <= 0.5 + timing.step_s(1, 0) < jump
    run(engine)
    assert told.first["b"][1] < 0.6
    assert told.over["a"] > told.over["b"]


def test_blocks_are_driven_out_and_told() -> None:
    engine = SimEngine("e", SHAPE, Told())
    engine.add(Work("a", list(range(40)), 40 * BLOCK, 1), 0.0)
    heard = []
    while engine.due < float("inf"):
        heard += engine.complete(engine.due)
    engine.add(Work("b", list(range(100, 140)), 40 * BLOCK, 1), 99.0)
    while engine.due < float("inf"):
        heard += engine.complete(engine.due)
    held: set[int] = set()
    for event in heard:
        if isinstance(event, KvHeld):
            held |= set(event.ours)
        if isinstance(event, KvRemoved):
            held -= set(event.block_hashes)
    assert held == engine.cache.resident()


def test_contexts_share_what_they_have_in_common_and_no_more() -> None:
    one = Context([("head", 3 * BLOCK), ("a", BLOCK)])
    other = Context([("head", 3 * BLOCK), ("b", BLOCK)])
    assert one.chain[:3] == other.chain[:3]
    assert one.chain[3] != other.chain[3]
    before = one.chain
    one.add("more", 2 * BLOCK)
    assert one.chain[:4] == before


@pytest.mark.parametrize("policy", ["kv", "round_robin", "least_loaded", "sticky"])
def test_a_run_is_whole_and_the_same_every_time(policy: str) -> None:
    def once() -> list[tuple[str, str, float, float]]:
        sessions = traces.spread(generate(12, 1, SMALL), 30.0, 2)
        fleet = Fleet(4, settings=Settings(policy=policy))
        found = fleet.run(sessions)
        assert len(found.turns) == traces.turns_of(sessions)
        assert all(0 < turn.ttft <= turn.seconds for turn in found.turns)
        assert {r.turns for r in fleet.router.fleet.replicas.values()} == {0}
        assert {r.decode for r in fleet.router.fleet.replicas.values()} == {0}
        return [(t.session, t.replica, t.ttft, t.seconds) for t in found.turns]

    assert once() == once()


def test_sub_agents_run_while_their_parent_waits() -> None:
    sessions = traces.spread(generate(6, 3, SMALL), 1.0, 2)
    parents = [s for s in sessions if any(turn.agents for turn in s.turns)]
    assert parents
    assert len(walk(sessions)) > len(sessions)
    found = Fleet(2).run(sessions)
    first = {t.session: t.asked for t in reversed(found.turns)}
    for parent in parents:
        for turn in parent.turns:
            assert all(first[agent.name] > parent.start for agent in turn.agents)


def test_kv_keeps_sessions_with_their_cache() -> None:
    sessions = traces.spread(generate(8, 1), 20.0, 2)
    kv = Fleet(4).run(sessions)
    blind = Fleet(4, settings=Settings(policy="round_robin")).run(sessions)
    assert figures.hit(kv.turns) > 0.85 > figures.hit(blind.turns)
    assert figures.ttft(blind.turns, 0.5) > 2 * figures.ttft(kv.turns, 0.5)
    assert kv.prefilled < blind.prefilled


def test_speculative_prefill_computes_nothing_twice() -> None:
    habits = Habits(turns=6, agents=0.0, out=4000, kept_out=0.6, result=400)
    sessions = traces.spread(generate(8, 4, habits), 60.0, 2)
    warmed, control = Fleet(2, warm=True).run(sessions), Fleet(2).run(sessions)
    assert warmed.warmed > 0 == control.warmed
    assert figures.ttft(warmed.turns, 0.5) < figures.ttft(control.turns, 0.5)
    assert warmed.prefilled <= 1.05 * control.prefilled


def test_traces_load_where_there_are_any() -> None:
    where = traces.folder()
    if where is None:
        pytest.skip("TREADLE_TRACES names no folder")
    sessions = traces.weka(where)
    assert len(sessions) > 20
    for session in sessions:
        for turn in session.turns:
            assert turn.tokens // BLOCK <= len(turn.chain)
    heads = {session.turns[0].chain[0] for session in sessions}
    assert 1 < len(heads) < len(sessions)
    some = traces.aiperf(where, 20)
    assert len({session.turns[0].chain[0] for session in some}) == 1
    assert all(
        b.tokens > a.tokens for s in some for a, b in zip(s.turns, s.turns[1:], strict=False)
    )
    assert len(traces.mooncake(where, "synthetic")) > 1000


def test_a_table_has_a_row_for_each_run() -> None:
    found = Fleet(2).run(traces.spread(generate(2, 1, SMALL), 1.0, 1))
    lines = figures.table({"kv": figures.row(found)}).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("| kv | ")
