from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.engines.scripted.cache import PrefixCache
from actors.engines.scripted.schedule import Scheduler, Step
from actors.engines.scripted.script import Fault, Pace, Script
from actors.engines.scripted.seat import Work
from actors.engines.scripted.timing import Timing
from tests.actors.engines.scripted.toy import ends, said
from turns.frames import Frame

SIZE = 4


def scheduler(*, blocks: int = 64, max_turns: int = 4, **timing: Any) -> Scheduler:
    return Scheduler(timing=Timing(**timing), cache=PrefixCache(blocks, SIZE), max_turns=max_turns)


def work(
    turn: str = "t", prompt: int = 3, script: Script | int = 5, limit: int = 99, **fields: Any
) -> Work:
    if isinstance(script, int):
        script = Script(list(range(100, 100 + script)))
    return Work(turn, list(range(prompt)), script, limit, **fields)


def run(machine: Scheduler, now: float = 0.0, steps: int = 10_000) -> tuple[list[Frame], float]:
    """Step until there is nothing to do, at most `steps` times."""
    frames: list[Frame] = []
    for _ in range(steps):
        end = machine.begin_step(now)
        if end is None:
            if machine.wake_at == math.inf:
                break
            now = machine.wake_at
            continue
        step = machine.finish_step(end)
        assert len({frame.turn for frame in step.frames}) == len(step.frames)
        frames += step.frames
        now = end
    return frames, now


def step(machine: Scheduler, now: float = 0.0) -> Step:
    end = machine.begin_step(now)
    assert end is not None
    return machine.finish_step(end)


def test_a_turn_says_its_script_a_token_a_step() -> None:
    machine = scheduler(step_ms=20)
    machine.add(work(script=5), 0.0)
    frames, now = run(machine)
    assert [frame.ids for frame in frames] == [[100], [101], [102], [103], [104]]
    assert ends(frames) == ["stop"]
    assert frames[0].cached == 0
    assert [frame.cached for frame in frames[1:]] == [-1] * 4
    assert now == pytest.approx(0.100)
    assert len(machine) == 0


def test_prefill_takes_time_and_cached_blocks_none() -> None:
    machine = scheduler(step_ms=10, prefill_tokens_per_s=1000, prefill_chunk=8)
    machine.add(work("a", prompt=20, script=1), 0.0)
    _, cold = run(machine)
    assert cold == pytest.approx(3 * 0.010 + 20 / 1000)
    machine.add(work("b", prompt=20, script=1), cold)
    frames, warm = run(machine, cold)
    # The last block is computed again: the last token of a prompt always is.
    assert frames[0].cached == 16
    assert warm - cold == pytest.approx(0.010 + 4 / 1000)
    assert machine.stats().cached_tokens_total == 16
    assert machine.stats().prompt_tokens_total == 40


def test_a_long_prompt_slows_the_turns_beside_it() -> None:
    machine = scheduler(step_ms=10, prefill_tokens_per_s=1000, prefill_chunk=20)
    machine.add(work("a", script=10), 0.0)
    step(machine)
    machine.add(work("b", prompt=40, script=1), 0.0)
    assert machine.begin_step(1.0) == pytest.approx(1.0 + 0.010 + 0.020)


def test_decoding_costs_by_the_turn_where_the_timing_says_so() -> None:
    machine = scheduler(step_ms=10, turn_ms=1)
    for name in "abc":
        machine.add(work(name), 0.0)
    step(machine)
    assert machine.begin_step(1.0) == pytest.approx(1.013)


def test_what_was_said_is_a_prefix_for_the_next_turn() -> None:
    machine = scheduler()
    machine.add(work("a", prompt=6, script=7), 0.0)
    run(machine)
    prompt = [*range(6), *range(100, 107), 55]
    machine.add(Work("b", prompt, Script([1]), 9), 0.0)
    frames, _ = run(machine)
    assert frames[0].cached == 12


def test_salts_do_not_share() -> None:
    machine = scheduler()
    for name, salt in (("a", ""), ("b", "other"), ("c", "other")):
        machine.add(work(name, prompt=9, script=1, salt=salt), 0.0)
        frames, _ = run(machine)
        assert frames[0].cached == (8 if name == "c" else 0)


def test_seats_go_by_priority_then_arrival() -> None:
    machine = scheduler(max_turns=1)
    for name, priority in (("late", 5), ("first", 0), ("second", 0), ("urgent", -3)):
        machine.add(work(name, script=1, priority=priority), 0.0)
    frames, _ = run(machine)
    assert [frame.turn for frame in frames] == ["urgent", "first", "second", "late"]


def test_max_tokens_cuts_with_finish_length() -> None:
    machine = scheduler()
    machine.add(work(script=5, limit=3), 0.0)
    frames, _ = run(machine)
    assert (said(frames), ends(frames)) == ([100, 101, 102], ["length"])


def test_no_tokens_asked_for_only_warms_the_cache() -> None:
    machine = scheduler()
    machine.add(work(prompt=9, limit=0), 0.0)
    frames, _ = run(machine)
    assert (said(frames), ends(frames)) == ([], ["length"])
    machine.add(work(prompt=9, script=1), 0.0)
    assert run(machine)[0][0].cached == 8


@pytest.mark.parametrize("at", [0, 1, 3])
def test_abort_ends_a_turn_at_once(at: int) -> None:
    machine = scheduler()
    machine.add(work(prompt=9), 0.0)
    for _ in range(at):
        step(machine)
    frame = machine.abort("t")
    assert frame is not None
    assert (frame.finish, frame.ids) == ("abort", [])
    assert machine.abort("t") is None
    assert run(machine)[0] == []
    stats = machine.stats()
    assert (stats.running, stats.waiting, stats.kv_used, stats.prefill_tokens) == (0, 0, 0.0, 0)
    assert stats.aborts_total == 1


def test_abort_inside_a_step_takes_the_turn_out_of_it() -> None:
    machine = scheduler()
    machine.add(work("a"), 0.0)
    machine.add(work("b"), 0.0)
    end = machine.begin_step(0.0)
    machine.abort("a")
    assert end is not None
    assert [frame.turn for frame in machine.finish_step(end).frames] == ["b"]


def test_aborted_turns_leave_nothing_in_the_queue() -> None:
    machine = scheduler(max_turns=1)
    machine.add(work("runs"), 0.0)
    step(machine)
    for at in range(1000):
        machine.add(work(f"q{at}"), 0.0)
        machine.abort(f"q{at}")
    assert len(machine._queue) <= 2
    assert len(machine) == 1


def test_cuts_make_frames_of_several_tokens_or_none() -> None:
    machine = scheduler()
    cuts = [6, 6, 7, 7]
    machine.add(work(script=Script(list(range(7)), cuts=cuts)), 0.0)
    frames, _ = run(machine)
    assert [frame.ids for frame in frames] == [[0, 1, 2, 3, 4, 5], [], [6], []]
    assert ends(frames) == ["stop"]
    assert frames[-1].finish == "stop"


def test_a_turn_keeps_its_own_pace() -> None:
    machine = scheduler(step_ms=10)
    machine.add(work("slow", script=Script([1, 2, 3], pace=Pace(token_s=0.1, first_s=0.5))), 0.0)
    machine.add(work("fast", script=4), 0.0)
    spoken: dict[str, list[float]] = {"slow": [], "fast": []}
    now = 0.0
    while len(machine):
        end = machine.begin_step(now)
        if end is None:
            now = machine.wake_at
            continue
        for frame in machine.finish_step(end).frames:
            spoken[frame.turn].append(end)
        now = end
    assert spoken["fast"] == pytest.approx([0.01, 0.02, 0.03, 0.04])
    assert spoken["slow"] == pytest.approx([0.5, 0.6, 0.7])


def test_a_resumed_turn_goes_on_behind_what_was_said() -> None:
    machine = scheduler()
    script = Script(list(range(100, 108)))
    machine.add(Work("t", [1, 2, 3, 100, 101], script, 4, resumed=2), 0.0)
    frames, _ = run(machine)
    assert (said(frames), ends(frames)) == ([102, 103, 104, 105], ["length"])


def test_a_resumed_turn_keeps_its_cuts() -> None:
    machine = scheduler()
    script = Script(list(range(100, 108)), cuts=[3, 5, 8])
    machine.add(Work("t", [1, 100, 101, 102, 103], script, 9, resumed=4), 0.0)
    assert [frame.ids for frame in run(machine)[0]] == [[104], [105, 106, 107]]


def test_fail_comes_alone_after_what_was_said() -> None:
    machine = scheduler()
    machine.add(work(script=Script([1, 2], fault=Fault("fail", "no luck"))), 0.0)
    frames, _ = run(machine)
    assert [frame.ids for frame in frames] == [[1], [2], []]
    assert (frames[-1].finish, frames[-1].error) == ("error", "no luck")


def test_a_hanging_turn_says_nothing_more_and_can_be_aborted() -> None:
    machine = scheduler()
    machine.add(work("mute", script=Script([1, 2], fault=Fault("hang"))), 0.0)
    machine.add(work("other", script=4), 0.0)
    frames, _ = run(machine)
    assert said(frames, "mute") == [1, 2]
    assert (ends(frames, "mute"), ends(frames, "other")) == ([], ["stop"])
    assert machine.abort("mute") is not None
    assert len(machine) == 0


def test_a_stalled_engine_takes_no_step() -> None:
    machine = scheduler()
    machine.add(work("mute", script=Script([1], fault=Fault("stall"))), 0.0)
    machine.add(work("other", script=4), 0.0)
    run(machine)
    assert machine.stalled
    assert len(machine) == 2
    assert machine.begin_step(9.0) is None


def test_a_crash_is_told_with_the_frames_before_it() -> None:
    machine = scheduler()
    machine.add(work(script=Script([1], fault=Fault("raise"))), 0.0)
    last = step(machine)
    assert said(last.frames) == [1]
    assert last.fault == Fault("raise")
    assert [frame.finish for frame in machine.fail("dead")] == ["error"]


def test_a_turn_that_can_never_fit_is_refused() -> None:
    machine = scheduler(blocks=2)
    with pytest.raises(ValueError, match="needs 3 blocks"):
        machine.add(work(prompt=6, script=3), 0.0)


def test_without_blocks_the_worst_placed_turn_waits_and_loses_nothing() -> None:
    machine = scheduler(blocks=6)
    machine.add(work("a", prompt=8, script=12), 0.0)
    machine.add(Work("b", list(range(50, 58)), Script(list(range(12))), 99, priority=1), 0.0)
    frames, _ = run(machine)
    assert machine.preemptions > 0
    assert said(frames, "a") == list(range(100, 112))
    assert said(frames, "b") == list(range(12))
    order = [frame.turn for frame in frames if frame.finish]
    assert order == ["a", "b"]
    assert [frame.cached >= 0 for frame in frames if frame.turn == "b"].count(True) == 1


def test_relief_is_the_time_of_the_shortest_running_turn() -> None:
    machine = scheduler(step_ms=100)
    assert machine.relief_s() == 0.0
    machine.add(work("long", script=50), 0.0)
    machine.add(work("short", script=21), 0.0)
    step(machine)
    assert machine.relief_s() == pytest.approx(2.0)


@settings(max_examples=25, deadline=None)
@given(priorities=st.lists(st.integers(-2, 2), min_size=1, max_size=8))
def test_turns_are_seated_in_order_and_alike_every_time(priorities: list[int]) -> None:
    runs = []
    for _ in range(2):
        machine = scheduler(max_turns=1, blocks=9)
        for at, priority in enumerate(priorities):
            machine.add(work(str(at), prompt=at + 1, script=at + 1, priority=priority), 0.0)
        runs.append(run(machine)[0])
    assert runs[0] == runs[1]
    seated = [int(frame.turn) for frame in runs[0] if frame.cached >= 0]
    assert seated == sorted(range(len(priorities)), key=lambda at: priorities[at])


turns = st.builds(
    lambda prompt, length, limit, priority, cut, pace: (
        prompt,
        Script(
            list(range(1000, 1000 + length)),
            cuts=[*range(cut, length, cut), length] if cut else None,
            pace=Pace(pace, pace) if pace else None,
        ),
        limit,
        priority,
    ),
    prompt=st.lists(st.integers(0, 1), min_size=1, max_size=14),
    length=st.integers(1, 12),
    limit=st.integers(0, 14),
    priority=st.integers(0, 2),
    cut=st.integers(0, 3),
    pace=st.sampled_from([0.0, 0.0, 0.015]),
)


@settings(max_examples=150, deadline=None)
@given(
    batch=st.lists(turns, min_size=1, max_size=8),
    aborts=st.dictionaries(st.integers(0, 30), st.integers(0, 7), max_size=4),
    blocks=st.integers(7, 12),
    max_turns=st.integers(1, 4),
    chunk=st.integers(1, 20),
)
def test_laws(
    batch: list[tuple[list[int], Script, int, int]],
    aborts: dict[int, int],
    blocks: int,
    max_turns: int,
    chunk: int,
) -> None:
    """Every turn ends exactly once, says a prefix of its script, and leaves nothing behind."""
    machine = scheduler(
        blocks=blocks,
        max_turns=max_turns,
        step_ms=10,
        prefill_tokens_per_s=500,
        prefill_chunk=chunk,
    )
    for at, (prompt, script, limit, priority) in enumerate(batch):
        machine.add(Work(str(at), prompt, script, limit, priority=priority), 0.0)
    frames: list[Frame] = []
    now, steps = 0.0, 0
    while len(machine):
        steps += 1
        assert steps < 3000
        if (victim := aborts.get(steps)) is not None and (frame := machine.abort(str(victim))):
            frames.append(frame)
        end = machine.begin_step(now)
        if end is None:
            assert len(machine) == 0 or machine.wake_at < math.inf
            now = machine.wake_at
            continue
        frames += machine.finish_step(end).frames
        now = end
        stats = machine.stats()
        assert stats.running <= max_turns
        assert 0.0 <= stats.kv_used <= 1.0
    for at, (_, script, limit, _) in enumerate(batch):
        mine = [frame for frame in frames if frame.turn == str(at)]
        ids = said(mine, str(at))
        (end_,) = ends(mine, str(at))
        assert mine[-1].finish is not None
        assert [frame.cached >= 0 for frame in mine].count(True) == 1
        assert mine[0].cached >= 0
        assert ids == list(script.ids)[: len(ids)]
        if end_ != "abort":
            assert ids == list(script.ids)[:limit]
            assert end_ == ("length" if limit < len(script.ids) else "stop")
    last = machine.stats()
    assert (last.kv_used, last.running, last.waiting, last.prefill_tokens) == (0.0, 0, 0, 0)
    assert last.output_tokens_total == sum(len(frame.ids) for frame in frames)
