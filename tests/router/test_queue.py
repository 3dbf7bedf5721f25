from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.decision import Ask
from router.queue import Queue


def ask(
    turn: str, *, tier: int = 0, priority: int = 0, tenant: str = "", tokens: int = 1000
) -> Ask:
    return Ask(
        turn=turn, hashes=[], prompt_tokens=tokens, tier=tier, priority=priority, tenant=tenant
    )


def drain(queue: Queue) -> list[str]:
    return [queue.pop().turn for _ in range(len(queue))]


def test_equals_go_in_the_order_they_came() -> None:
    queue = Queue(limit=9)
    for turn in "abc":
        queue.push(ask(turn), 0.0)
    assert drain(queue) == ["a", "b", "c"]


def test_a_higher_tier_always_goes_first() -> None:
    queue = Queue(limit=9)
    queue.push(ask("low", priority=100), 0.0)
    queue.push(ask("high", tier=1, priority=-100), 1.0)
    assert drain(queue) == ["high", "low"]


def test_priority_jumps_the_line_within_a_tier() -> None:
    queue = Queue(limit=9)
    queue.push(ask("a"), 0.0)
    queue.push(ask("b", priority=1), 0.0)
    assert drain(queue) == ["b", "a"]


def test_a_low_priority_is_not_overtaken_for_ever() -> None:
    queue = Queue(limit=99)
    queue.push(ask("patient"), 0.0)
    served = []
    for serial in range(60):
        queue.push(ask(f"urgent-{serial}", priority=1), 0.0)
        served.append(queue.pop().turn)
    assert 8 <= served.index("patient") <= 12


def test_tenants_take_turns_whatever_their_backlog() -> None:
    queue = Queue(limit=99)
    for serial in range(40):
        queue.push(ask(f"big-{serial}", tenant="big"), 0.0)
    for _ in range(10):
        queue.pop()
    for serial in range(4):
        queue.push(ask(f"small-{serial}", tenant="small"), 0.0)
    first = [turn.split("-")[0] for turn in drain(queue)]
    assert Counter(first[:4]) == {"small": 2, "big": 2}  # none banks credit by being idle
    assert Counter(first[:9])["small"] == 4


def test_turns_weigh_by_their_tokens() -> None:
    queue = Queue(limit=99)
    for serial in range(20):
        queue.push(ask(f"long-{serial}", tenant="long", tokens=10_000), 0.0)
        queue.push(ask(f"short-{serial}", tenant="short", tokens=1_000), 0.0)
    first = drain(queue)[:11]
    assert Counter(turn.split("-")[0] for turn in first) == {"short": 10, "long": 1}


def test_when_full_the_last_in_rank_has_to_go() -> None:
    queue = Queue(limit=2)
    assert queue.push(ask("a"), 0.0) is None
    assert queue.push(ask("b"), 0.0) is None
    late = ask("c")
    assert queue.push(late, 0.0) is late
    gone = queue.push(ask("d", tier=1), 0.0)
    assert gone is not None
    assert gone.turn == "b"
    assert drain(queue) == ["d", "a"]


def test_patience_ends() -> None:
    queue = Queue(limit=9, patience=10)
    queue.push(ask("a"), 0.0)
    queue.push(ask("b"), 5.0)
    assert [gone.turn for gone in queue.expire(10.0)] == ["a"]
    assert drain(queue) == ["b"]


def test_a_turn_waits_once() -> None:
    queue = Queue(limit=9)
    queue.push(ask("a"), 0.0)
    with pytest.raises(ValueError, match="waits already"):
        queue.push(ask("a"), 0.0)


def test_ahead_counts_who_goes_before() -> None:
    queue = Queue(limit=9)
    for turn in "ab":
        queue.push(ask(turn), 0.0)
    assert queue.ahead("b") == 1
    with pytest.raises(KeyError):
        queue.ahead("c")


steps = st.lists(
    st.tuples(st.sampled_from(["push", "pop", "cancel", "wait"]), st.integers(0, 30)), max_size=60
)


@given(steps)
def test_every_turn_comes_out_exactly_once(steps: Any) -> None:
    queue, now, inside, seen = Queue(limit=5, patience=20), 0.0, set(), set()
    for serial, (step, number) in enumerate(steps):
        out: list[str] = []
        if step == "push":
            made = ask(f"t{serial}", tier=number % 2, priority=number, tenant=str(number % 3))
            inside.add(made.turn)
            gone = queue.push(made, now)
            out = [gone.turn] if gone else []
        elif step == "pop" and inside:
            waiting = queue.peek()
            assert waiting is not None
            out = [queue.pop().turn]
            assert out == [waiting.turn]
        elif step == "cancel" and inside:
            turn = sorted(inside)[number % len(inside)]
            assert queue.cancel(turn)
            assert not queue.cancel(turn)
            out = [turn]
        elif step == "wait":
            now += number
            out = [gone.turn for gone in queue.expire(now)]
        assert set(out) <= inside
        assert not set(out) & seen
        inside -= set(out)
        seen |= set(out)
        assert len(queue) == len(inside) <= 5
    assert set(drain(queue)) == inside
    assert queue.peek() is None
    assert queue._ends == {}


@pytest.mark.parametrize("how", ["left", "too-late", "put-out"])
def test_a_tenant_pays_for_no_turn_that_was_not_served(how: str) -> None:
    queue = Queue(limit=5, patience=10)
    for serial in range(3):
        queue.push(ask(f"b{serial}", tenant="b"), 5.0)
    for serial in range(5):
        least = -1 if how == "put-out" else 0
        queue.push(ask(f"lost-{serial}", tenant="a", tokens=50_000, priority=least), 0.0)
        if how == "left":
            assert queue.cancel(f"lost-{serial}")
        elif how == "too-late":
            assert [gone.turn for gone in queue.expire(10.0)] == [f"lost-{serial}"]
        else:
            queue.push(ask("filler", tenant="c"), 5.0)
            gone = queue.push(ask("urgent", tier=1, tenant="d"), 5.0)
            assert gone is not None
            assert gone.turn == f"lost-{serial}"
            assert queue.cancel("urgent")
            assert queue.cancel("filler")
    queue.push(ask("a", tenant="a", tokens=50_000), 5.0)
    assert drain(queue) == ["b0", "a", "b1", "b2"]


def test_who_asked_behind_a_turn_that_left_moves_up() -> None:
    queue = Queue(limit=9)
    queue.push(ask("a0", tenant="a", tokens=50_000), 0.0)
    for serial in range(3):
        queue.push(ask(f"b{serial}", tenant="b"), 0.0)
    queue.push(ask("a1", tenant="a"), 0.0)
    assert queue.ahead("a1") == 4
    assert queue.cancel("a0")
    assert drain(queue) == ["b0", "a1", "b1", "b2"]


def test_what_was_served_is_paid_for_whoever_leaves_later() -> None:
    queue = Queue(limit=9)
    for turn in ("a0", "a1"):
        queue.push(ask(turn, tenant="a", tokens=3000), 0.0)
    for serial in range(6):
        queue.push(ask(f"b{serial}", tenant="b"), 0.0)
    assert queue.pop().turn == "a0"
    assert queue.cancel("a1")
    queue.push(ask("a2", tenant="a"), 0.0)
    assert drain(queue) == ["b0", "b1", "b2", "b3", "a2", "b4", "b5"]


asks = st.builds(
    lambda tenant, priority, tokens, tier: {
        "tenant": tenant,
        "priority": priority,
        "tokens": tokens,
        "tier": tier,
    },
    st.sampled_from("ab"),
    st.integers(0, 2),
    st.integers(1, 9000),
    st.integers(0, 1),
)
ROUND = st.lists(st.tuples(st.sampled_from(["stays", "cancel", "expire", "evict"]), asks))


def leave(queue: Queue, lost: list[tuple[str, str]], order: Any, now: float) -> None:
    """Each leaves in its way: they are the only ones of the lowest tier, or whose time is over."""
    left = order([turn for how, turn in lost if how == "cancel"])
    assert all(queue.cancel(turn) for turn in left)
    over = {gone.turn for gone in queue.expire(now + queue.patience / 2)}
    assert over == {turn for how, turn in lost if how == "expire"}
    out = {turn for how, turn in lost if how == "evict"}
    queue.limit = len(queue)
    urgent = [f"urgent-{turn}" for turn in out]
    gone = [queue.push(ask(turn, tier=9, tenant="urgent"), now) for turn in urgent]
    assert {one.turn for one in gone if one is not None} == out
    queue.limit = 999
    assert all(queue.cancel(turn) for turn in urgent)


@given(rounds=st.lists(ROUND, max_size=4), data=st.data())
def test_turns_that_leave_unserved_change_the_order_of_no_others(rounds: Any, data: Any) -> None:
    queue, plain, now = Queue(limit=999, patience=100), Queue(limit=999, patience=100), 0.0
    for each in (queue, plain):
        each.push(ask("last", tier=-2, tenant="last"), 1e9)  # who is never out of work
    for number, turns in enumerate(rounds):
        lost = []
        for serial, (how, fields) in enumerate(turns):
            turn = f"{number}-{serial}"
            if how == "stays":
                plain.push(ask(turn, **fields), now)
                queue.push(ask(turn, **fields), now)
            else:
                lost.append((how, turn))
                came = now - queue.patience / 2 if how == "expire" else now
                least = {"tier": -3} if how == "evict" else {}
                queue.push(ask(turn, **fields | least), came)
        leave(queue, lost, lambda left: data.draw(st.permutations(left)), now)
        assert [one.turn for one in queue.line()] == [one.turn for one in plain.line()]
        if len(plain) > 1:
            assert queue.pop().turn == plain.pop().turn
    assert drain(queue) == drain(plain)
