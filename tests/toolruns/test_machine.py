from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolruns.streams import (
    BUDGET,
    budget,
    contract,
    delivery,
    one_answer,
    rows,
    stream,
    upstream,
)
from toolruns.contract import MODES
from toolruns.decisions import Pace
from toolruns.endings import EXTERNAL, Ending
from toolruns.machine import FIRST_PULL, LARGEST_PULL, RunOrderError, ToolRun
from toolruns.predicate.parse import parse
from toolruns.replay import Delivery, Fault, Script, replay
from toolruns.signals import (
    Chunk,
    Close,
    Continue,
    Decided,
    Exhausted,
    Keep,
    Open,
    Pull,
    Return,
    Show,
    Stop,
    Tick,
    Yield,
)
from toolruns.trajectory import faults


def types_of(actions, *kinds):
    return [type(action) for action in actions if isinstance(action, kinds)]


def running(**changes):
    run = ToolRun("trj_1", contract("chunked"), budget(**changes))
    run.open(0.0)
    return run


def test_opening_opens_upstream_and_asks_for_a_little():
    actions = ToolRun("trj_1", contract("chunked"), BUDGET).open(0.0)
    assert types_of(actions, Open, Pull) == [Open, Pull]
    assert Pull(FIRST_PULL) in actions


def test_without_time_upstream_is_never_opened():
    run = ToolRun("trj_1", contract("chunked"), budget(seconds=0.0, origin="session"))
    actions = run.open(0.0)
    assert types_of(actions, Open, Pull, Close, Return) == [Return]
    assert run.ending is Ending.DEADLINE_INHERITED


def test_pulls_start_small_and_double():
    played = replay(Script(contract("chunked"), stream(12, 1)), BUDGET)
    assert played.pulls[:4] == [32, 64, 128, 256]
    assert max(played.pulls) <= LARGEST_PULL


def test_a_pull_never_asks_for_more_rows_than_the_budget_has():
    played = replay(Script(contract("chunked"), stream(9, 32)), budget(rows=50))
    assert played.pulls == [32, 18]
    assert played.view["rows"] == 50


def test_upstream_is_closed_before_the_result_is_returned():
    run = running()
    actions = run.feed(Exhausted(), 1.0)
    assert types_of(actions, Close, Return) == [Close, Return]


@pytest.mark.parametrize(
    "signal",
    [
        Tick(),
        Exhausted(),
        Chunk(rows(1), 1),
        Stop(Ending.CANCELLED),
        Decided("stop"),
        Continue(BUDGET),
    ],
    ids=lambda signal: type(signal).__name__,
)
def test_nothing_happens_after_the_end(signal):
    run = running()
    run.feed(Exhausted(), 1.0)
    with pytest.raises(RunOrderError, match="when a run is ended"):
        run.feed(signal, 2.0)
    assert run.wake_at() == float("inf")


def test_a_run_opens_once():
    with pytest.raises(RunOrderError, match="once"):
        running().open(1.0)


@pytest.mark.parametrize("ending", [e for e in Ending if e not in EXTERNAL], ids=str)
def test_what_the_run_decides_itself_cannot_be_brought_in(ending):
    with pytest.raises(RunOrderError, match="decided by the run itself"):
        running().feed(Stop(ending), 1.0)


def test_stop_row_is_reported_though_the_whole_chunk_counts():
    played = replay(Script(contract("chunked"), stream(4)), BUDGET, until=parse("count >= 30"))
    assert played.view["rows"] == 32
    assert played.view["predicate"]["satisfied_at_row"] == 30


def test_a_chunk_that_ends_the_source_is_complete_even_when_it_satisfies():
    script = Script(contract("chunked"), [delivery(40, last=True)])
    played = replay(script, BUDGET, until=parse("count >= 30"))
    assert played.ending is Ending.EXHAUSTED
    assert played.view["predicate"]["satisfied_at_row"] == 30


def test_a_chunk_cut_by_the_row_budget_is_not_complete():
    played = replay(Script(contract("chunked"), [delivery(40, last=True)]), budget(rows=39))
    assert (played.ending, played.view["rows"]) == (Ending.BUDGET_ROWS, 39)


def test_a_busy_source_does_not_outrun_the_clock():
    script = Script(contract("unbounded"), stream(4000, 1, took=0.01, over=False))
    played = replay(script, budget(seconds=2.0, rows=10**6))
    assert played.ending is Ending.BUDGET_WALL_CLOCK
    assert played.ended_at == pytest.approx(2.0, abs=0.02)


def test_time_alone_can_satisfy_a_predicate():
    script = Script(contract("unbounded"), stream(1, over=False))
    played = replay(script, BUDGET, until=parse("any(status = 'gone') OR idle >= 3s"))
    assert played.ending is Ending.PREDICATE_SATISFIED
    assert played.ended_at == pytest.approx(3.1, abs=0.11)


def test_a_synopsis_is_shown_every_few_chunks():
    played = replay(Script(contract("chunked"), stream(9)), BUDGET)
    assert [e.type for e in played.entries].count("synopsis.emitted") == 4


def test_a_silent_stream_still_shows_a_heartbeat():
    played = replay(Script(contract("unbounded"), []), budget(idle_seconds=9.0))
    shown = [e.t_ms for e in played.entries if e.type == "synopsis.emitted"]
    assert shown == [2000.0, 4000.0, 6000.0, 8000.0]


def test_yield_hands_over_and_continue_goes_on():
    script = Script(contract("chunked"), stream(6, took=1.0), legs=[None] * 3)
    played = replay(script, budget(yield_after=2.5))
    assert played.ending is Ending.EXHAUSTED
    assert played.yields == [2.5, 5.0]
    assert played.view["rows"] == 6 * 32
    assert faults(played.entries) == []


def test_a_yielded_run_asks_for_nothing_while_it_is_held():
    run = running(yield_after=1.0)
    assert types_of(run.feed(Tick(), 1.0), Yield, Pull) == [Yield]
    with pytest.raises(RunOrderError, match="when a run is yielded"):
        run.feed(Chunk(rows(3), 10), 1.5)
    assert types_of(run.feed(Continue(BUDGET), 2.0), Pull) == []
    assert types_of(run.feed(Chunk(rows(3), 10), 2.5), Keep, Pull) == [Keep, Pull]


def test_held_time_is_not_work_time():
    run = running(yield_after=1.0)
    run.feed(Tick(), 1.0)
    run.feed(Continue(BUDGET), 21.0)
    assert run.elapsed(22.0) == 2.0


def test_checkpoint_yields_at_the_first_synopsis():
    played = replay(Script(contract("chunked"), stream(6)), BUDGET, checkpoint=True)
    assert played.view["rows"] == 64
    assert played.ending is Ending.HANDLE_CLOSED


def test_a_new_predicate_speaks_of_the_rows_before_it():
    run = running(yield_after=1.0)
    run.feed(Chunk(rows(32), 100), 0.5)
    run.feed(Tick(), 1.0)
    actions = run.feed(Continue(BUDGET, parse("count >= 20"), past=(rows(32),)), 2.0)
    assert types_of(actions, Close, Return) == [Close, Return]
    assert run.judge.satisfied_at == 20


def test_each_budget_warns_once():
    played = replay(Script(contract("chunked"), stream(8)), budget(rows=300))
    warned = [e.data["limit"] for e in played.entries if e.type == "budget.warned"]
    assert warned == ["rows"]


@pytest.mark.parametrize(
    ("verdicts", "ending", "rows_seen"),
    [
        pytest.param([Decided("stop")], Ending.MODEL_STOPPED, 64, id="stop"),
        pytest.param([Decided("continue")], Ending.EXHAUSTED, 256, id="continue"),
        pytest.param([Decided("failed")], Ending.EXHAUSTED, 256, id="unreadable-goes-on"),
        pytest.param(
            [Decided("refine", parse("count >= 100"))], Ending.PREDICATE_SATISFIED, 192, id="refine"
        ),
    ],
)
def test_a_decision_round_rules_the_stream(verdicts, ending, rows_seen):
    script = Script(contract("chunked"), stream(8), verdicts=verdicts)
    played = replay(script, BUDGET, pace=Pace("automatic"))
    assert (played.ending, played.view["rows"]) == (ending, rows_seen)
    assert [e.type for e in played.entries].count("decision.requested") == 1


def test_an_unbounded_source_that_closes_was_cut():
    played = replay(Script(contract("unbounded"), stream(1)), BUDGET)
    assert played.ending is Ending.UPSTREAM_TRUNCATED
    assert not played.view["complete"]


def test_a_plain_call_is_not_cut_by_idleness_or_its_predicates_clock():
    script = Script(contract("request_response"), one_answer(9.0))
    played = replay(script, BUDGET, until=parse("seconds > 1"))
    assert played.ending is Ending.EXHAUSTED


def test_a_stall_in_mid_stream_ends_idle():
    played = replay(Script(contract("paginated"), stream(8)), BUDGET, fault=Fault("stall", 3))
    assert played.ending is Ending.IDLE_TIMEOUT
    assert played.view["rows"] == 96


def test_replay_is_deterministic():
    script = Script(contract("chunked"), stream(20, 97))
    first, second = (replay(script, BUDGET, until=parse("sum(amount) > 1e6")) for _ in range(2))
    assert first.entries == second.entries
    for view in (first.view, second.view):
        for column in view["columns"]:
            column.pop("quantiles", None)  # the KLL sketch draws its own random numbers
    assert first.view == second.view


@settings(max_examples=60, deadline=None)
@given(
    mode=st.sampled_from(MODES),
    sizes=st.lists(st.integers(0, 90), max_size=12),
    took=st.floats(0.0, 4.0),
    rows_budget=st.integers(1, 400),
    fault=st.none()
    | st.builds(
        Fault, st.sampled_from(["drop", "stall", "error", "disconnect"]), st.integers(0, 8)
    ),
    stop=st.none() | st.floats(0.0, 25.0),
    until=st.sampled_from([None, "count >= 50", "distinct(user_id) > 20", "seconds > 5"]),
    yield_after=st.sampled_from([1.0, 100.0]),
)
def test_any_life_obeys_the_laws(  # noqa: PLR0917 (what hypothesis draws)
    mode, sizes, took, rows_budget, fault, stop, until, yield_after
):
    deliveries = [delivery(size, took=took) for size in sizes]
    deliveries.append(Delivery(Exhausted(), took))
    stops = [] if stop is None else [(stop, Stop(Ending.CANCELLED))]
    script = Script(contract(mode), deliveries, stops=stops, legs=[None, None])
    limits = budget(rows=rows_budget, yield_after=yield_after)
    played = replay(script, limits, until=parse(until) if until else None, fault=fault)
    assert faults(played.entries) == []
    assert played.view["complete"] is (played.ending is Ending.EXHAUSTED)
    legs = 1 + len(played.yields)
    assert played.view["rows"] <= rows_budget * legs
    assert played.ended_at <= legs * limits.seconds + limits.hold_seconds + 1e-6


@given(began=st.floats(0.0, 1e9), came=st.floats(0.0, 4.0), mode=st.sampled_from(MODES))
def test_a_tick_at_the_very_time_it_was_asked_for_is_never_in_vain(began, came, mode):
    """In floats `(began + seconds) - began` may be less than `seconds`."""
    run = ToolRun("trj_1", contract(mode), budget(yield_after=20.0, hold_seconds=40.0))
    run.open(began)
    if mode != "request_response":
        run.feed(delivery(1).signal, began + came)
    for _ in range(100):
        if run.state == "ended":
            return
        now, state = run.wake_at(), run.state
        run.feed(Tick(), now)
        assert run.wake_at() > now or run.state != state
    raise AssertionError("it never ends")


@pytest.mark.parametrize("mode", MODES)
def test_show_carries_what_the_model_would_read(mode):
    run = ToolRun("trj_1", contract(mode), BUDGET)
    run.open(0.0)
    actions = run.feed(Tick(), 2.0)
    view = next(action.snapshot for action in actions if isinstance(action, Show))
    assert (view["status"], view["complete"], view["rows"]) == ("running", False, 0)
    assert upstream(mode)
