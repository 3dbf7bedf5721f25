"""What is written down of a turn: its blocks in their times, its figures, one session of many."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from observe.record import MOST_SPANS, Line, Row, Span, Timeline, seen_in, together
from observe.recorder import Recorder, session_name
from observe.seen import FirstEvent, TurnFailed, TurnReceived
from observe.seen import TurnEnded as Ended
from observe.seen import TurnStarted as Began
from tests.observe.conftest import NAMES, tell_all
from turns.events import (
    Event,
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    TextEnded,
    ToolArgumentsDelta,
    ToolCallCut,
    ToolCallReady,
    ToolCallStarted,
    TurnEnded,
    TurnStarted,
    Usage,
)

STEPS: list[tuple[float, list[Event]]] = [
    (1.0, [TurnStarted(10), ReasoningDelta("hm")]),
    (2.0, [ReasoningDelta("so")]),
    (3.0, [ReasoningEnded(), TextDelta("Yes")]),
    (4.0, [TextEnded(), ToolCallStarted(0, "call_1", "add")]),
    (5.0, [ToolArgumentsDelta(0, '{"a":')]),
    (6.0, [ToolArgumentsDelta(0, "1}"), ToolCallReady(0, '{"a":1}')]),
    (7.0, [ToolCallStarted(1, "call_2", "sub"), ToolCallCut(1, "length")]),
    (8.0, [TurnEnded("length", Usage(10, 0, 9, 4))]),
]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def played(steps: list[tuple[float, list[Event]]]) -> Timeline:
    clock = Clock()
    timeline = Timeline(clock=clock)
    for clock.now, events in steps:
        timeline.step(events)
    return timeline


def test_blocks_begin_with_their_first_delta_and_end_when_they_are_whole() -> None:
    assert played(STEPS).spans == [
        Span("reasoning", 1.0, 3.0, 4),
        Span("text", 3.0, 4.0, 3),
        Span("call", 4.0, 6.0, 7, "add"),
        Span("call", 7.0, 7.0, 0, "sub", "", "length"),
    ]


def test_cutting_the_same_events_otherwise_changes_no_kind_and_no_size() -> None:
    alone = [(at, [event]) for at, events in STEPS for event in events]
    assert played(alone).spans == played(STEPS).spans


def test_a_timeline_says_what_comes_just_now_and_is_bounded() -> None:
    assert [played(STEPS[:n]).doing for n in (0, 1, 4, 6, 8)] == ["", "…", "add", "", ""]
    many: list[tuple[float, list[Event]]] = [(1.0, [TextDelta("a"), TextEnded()])] * 1000
    assert len(played(many).spans) == MOST_SPANS


def test_the_time_before_a_timeline_was_made_counts() -> None:
    clock = Clock()
    timeline = Timeline(0.5, clock)
    timeline.step([TextDelta("a"), TextEnded()])
    assert timeline.spans == [Span("text", 0.5, 0.5, 1)]


def recorded(recorder: Recorder) -> list[tuple[Line, str, tuple[str, ...]]]:
    over: list[tuple[Line, str, tuple[str, ...]]] = []
    recorder.over = lambda *told: over.append(told)
    return over


def test_a_turn_is_one_line_and_then_forgotten() -> None:
    recorder = Recorder()
    over = recorded(recorder)
    tell_all(recorder)
    (ended, message, _), (failed, died, _) = over
    assert (ended.turn, ended.stop, ended.attempts, ended.why) == ("turn-1", "length", 2, "load")
    assert (ended.input, ended.cached, ended.output, ended.reasoning) == (100, 64, 20, 5)
    assert (ended.ttft, ended.seconds, ended.harness, message) == (0.4, 1.0, "codex", "")
    assert (failed.failed, failed.stop, died) == ("engine", "", "replica r0 died")
    assert recorder.in_the_air(10) == []
    assert recorder.timeline("turn-1") is None


def test_turns_in_the_air_are_bounded_and_shown_as_they_are() -> None:
    recorder = Recorder(most=2)
    for n in range(3):
        names = replace(NAMES, turn=f"t{n}")
        recorder.turn_received(TurnReceived(names, 1.0, stream=True, owner="o"))
        recorder.turn_started(Began(names, 1.1, 50, 20))
        recorder.first_event(FirstEvent(names, 1.2, 0.2))
    timeline = recorder.timeline("t2")
    assert timeline is not None
    timeline.step([ToolCallStarted(0, "c", "add")])
    lines = recorder.in_the_air(10)
    assert [line.turn for line in lines] == ["t1", "t2"]
    assert (lines[1].doing, lines[1].input, lines[1].cached, lines[1].ttft) == ("add", 50, 20, 0.2)
    assert recorder.timeline("t0") is None
    assert recorder.count == 3
    recorder.turn_ended(Ended(replace(NAMES, turn="t0"), 2.0, "end", Usage(), 1.0))
    assert recorder.count == 2
    recorder.turn_failed(TurnFailed(replace(NAMES, turn="t0"), 2.0, "engine", "x", 1.0))
    recorder.turn_failed(TurnFailed(replace(NAMES, turn="t1"), 2.0, "engine", "x", 1.0))
    assert recorder.count == 1


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        pytest.param(("a", "s", "x"), ("a", "s", "y"), True, id="a key is one session"),
        pytest.param(("a", "s", "x"), ("b", "s", "x"), False, id="owners are apart"),
        pytest.param(("a", "", "x"), ("a", "", "y"), False, id="harnesses without a key"),
        pytest.param(("a", "~x", "x"), ("a", "\ud800", "x"), False, id="any text"),
    ],
)
def test_sessions_are_named_by_owner_and_key(
    left: tuple[str, str, str], right: tuple[str, str, str], same: bool
) -> None:
    assert (session_name(*left) == session_name(*right)) is same


def test_a_session_that_two_ingresses_saw_is_the_sum() -> None:
    left, right = Row("s", "k", "o", 1.0, 1.0), Row("s", "k", "o", 5.0, 5.0)
    spans = [Span("call", 0.1, 0.2), Span("text", 0.2, 0.3)]
    seen_in(left, Line("t1", "s", 1.0, input=10, cached=4, output=3, seconds=2.0, spans=spans))
    seen_in(right, Line("t2", "s", 5.0, failed="engine", model="m", broken="changed_system"))
    both = together(left, right)
    assert both == together(right, left)
    assert (both.turns, both.failed, both.calls, both.breaks, both.input) == (2, 1, 1, 1, 10)
    assert (both.first, both.last, both.model) == (1.0, 5.0, "m")
