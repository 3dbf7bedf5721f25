from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from tests.toolruns import test_machine
from tests.toolruns.streams import play
from toolruns import leg, machine, replay
from toolruns.contract import MODES
from toolruns.endings import ADVICE, IMPOSSIBLE, Ending, is_complete, reachable
from toolruns.replay import coverage
from toolruns.snapshot import text_of
from toolruns.trajectory import faults

CELLS = [pytest.param(m, e, id=f"{m}-{e}") for m, e in reachable()]


@pytest.mark.parametrize(("mode", "ending"), CELLS)
def test_every_ending_is_reached_in_every_mode_where_it_can_happen(mode, ending):
    assert play(mode, ending).ending is ending


@pytest.mark.parametrize(("mode", "ending"), CELLS)
def test_record_opens_once_ends_once_and_is_silent_after(mode, ending):
    entries = play(mode, ending).entries
    assert faults(entries) == []
    assert entries[-1].type == "trajectory.terminated"


@pytest.mark.parametrize(("mode", "ending"), CELLS)
def test_only_an_exhausted_source_is_complete(mode, ending):
    view = play(mode, ending).view
    text = text_of(view, 900)
    assert view["complete"] is (ending is Ending.EXHAUSTED)
    assert text.startswith("COMPLETE" if view["complete"] else f"PARTIAL ({ending})")
    assert ("PARTIAL" in text) is not view["complete"]
    assert len(text.encode()) <= 2048


@pytest.mark.parametrize(("mode", "ending"), list(IMPOSSIBLE), ids=str)
def test_what_cannot_happen_does_not(mode, ending):
    assert play(mode, ending).ending is not ending


def test_every_ending_tells_the_model_how_to_go_on():
    assert set(ADVICE) == set(Ending)
    assert [e for e in Ending if is_complete(e)] == [Ending.EXHAUSTED]


def test_coverage_report_is_full():
    reached = {(m, str(play(m, e).ending)) for m in MODES for e in Ending}
    report = coverage(reached, [(m, str(e)) for m, e in reachable()])
    assert report.splitlines()[-1] == "68 of 68 reachable cells"
    assert "." not in report


def test_coverage_report_shows_what_is_missing():
    report = coverage(
        {("chunked", "exhausted")}, [("chunked", "exhausted"), ("chunked", "cancelled")]
    )
    assert report.splitlines()[1:] == [
        "exhausted     x",
        "cancelled     .",
        "1 of 2 reachable cells",
    ]


MUTATIONS = [
    pytest.param("machine", "elif held:", "elif False:", id="predicate-at-chunk"),
    pytest.param(
        "machine", "elif over := self.leg.overspent():", "elif over := None:", id="budget"
    ),
    pytest.param("leg", "if self.rows >= self.budget.rows:", "if False:", id="rows"),
    pytest.param("leg", "if self.bytes >= self.budget.bytes else", "if False else", id="bytes"),
    pytest.param("machine", "if now >= self.leg.ends_at:", "if False:", id="wall-clock"),
    pytest.param("leg", 'self.budget.origin == "session"', "False", id="deadline"),
    pytest.param("machine", "elif now >= self._idle_at:", "elif False:", id="idle"),
    pytest.param(
        "machine", "if self.tokens + cost > self.leg.budget.tokens:", "if False:", id="tokens"
    ),
    pytest.param(
        "machine", 'if self.state == "running" and shown >=', "if False and shown >=", id="cadence"
    ),
    pytest.param("machine", "elif now >= self.leg.yields_at:", "elif False:", id="yield"),
    pytest.param("machine", "if whole and not cut:", "if False:", id="last-chunk"),
    pytest.param("machine", "if now >= self._held_until:", "if False:", id="hold"),
    pytest.param("machine", 'if self.contract.mode == "unbounded":', "if False:", id="unbounded"),
    pytest.param(
        "machine",
        "elif stream and self.judge.clocked and",
        "elif False and",
        id="predicate-at-tick",
    ),
]


@pytest.mark.parametrize(("module", "branch", "instead"), MUTATIONS)
def test_deleting_a_stop_branch_is_noticed(module, branch, instead, monkeypatch):
    """Each branch that ends or shows a run is cut out once; some scenario must then go wrong."""
    original = {"machine": machine, "leg": leg}[module]
    source = Path(original.__file__).read_text()
    assert source.count(branch) == 1
    mutant = types.ModuleType(original.__name__)
    monkeypatch.setitem(sys.modules, original.__name__, mutant)
    exec(compile(source.replace(branch, instead), original.__file__, "exec"), mutant.__dict__)  # noqa: S102 (our own source)
    if module == "leg":
        monkeypatch.setattr(machine, "Leg", mutant.Leg)
    else:
        monkeypatch.setattr(replay, "ToolRun", mutant.ToolRun)
    assert not _all_well()


def _all_well() -> bool:
    try:
        right = all(play(m, e).ending is e for m, e in reachable())
        test_machine.test_a_synopsis_is_shown_every_few_chunks()
        test_machine.test_time_alone_can_satisfy_a_predicate()
        test_machine.test_an_unbounded_source_that_closes_was_cut()
    except (AssertionError, RuntimeError, machine.RunOrderError, IndexError, KeyError):
        return False
    return right


def test_the_unmutated_machine_is_well():
    assert _all_well()
