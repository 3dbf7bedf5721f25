from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from router.load import Fleet, Info, Report

INFO = Info(block_size=16, max_turns=4)


class FleetMachine(RuleBasedStateMachine):
    """Whatever happens to reservations: counts equal the sum of those that stand."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet(begin_ttl=10, turn_ttl=100)
        self.now = 0.0
        self.made: list[str] = []
        self.ended: set[str] = set()

    @rule(name=st.sampled_from("ab"))
    def join(self, name: str) -> None:
        before = {r.id for r in self.fleet.reservations.values() if r.replica == name}
        self.fleet.join(name, INFO)
        self._end(before)

    @rule(name=st.sampled_from("ab"))
    def leave(self, name: str) -> None:
        self._end(r.id for r in self.fleet.leave(name))

    @precondition(lambda self: self.fleet.replicas)
    @rule(tokens=st.integers(0, 9), owner=st.sampled_from("xy"), data=st.data())
    def reserve(self, tokens: int, owner: str, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.fleet.replicas)))
        made = self.fleet.reserve(
            name,
            turn="t",
            owner=owner,
            uncached=tokens,
            prompt=tokens,
            osl=tokens,
            now=self.now,
            minding=tokens,
        )
        assert made.id not in self.made
        self.made.append(made.id)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def release(self, data: Any) -> None:
        name = data.draw(st.sampled_from(self.made))
        released = self.fleet.release(name) is not None
        assert released is (name not in self.ended)
        self.ended.add(name)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def first_token(self, data: Any) -> None:
        name = data.draw(st.sampled_from(self.made))
        made = self.fleet.first_token(name, self.now)
        assert made is None or (made.prefill == 0 and name not in self.ended)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def begun(self, data: Any) -> None:
        name = data.draw(st.sampled_from(self.made))
        assert self.fleet.begun(name, self.now) is (name not in self.ended)

    @rule(owner=st.sampled_from("xy"))
    def lose_owner(self, owner: str) -> None:
        self._end(r.id for r in self.fleet.release_owner(owner))
        assert not [r for r in self.fleet.reservations.values() if r.owner == owner]

    @rule(seconds=st.sampled_from([1.0, 11.0, 101.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._end(r.id for r in self.fleet.expire(self.now))
        assert all(r.expires > self.now for r in self.fleet.reservations.values())

    def _end(self, names: Any) -> None:
        fresh = set(names)
        assert not fresh & self.ended
        self.ended |= fresh

    @invariant()
    def counts_are_the_sum_of_what_stands(self) -> None:
        assert set(self.fleet.reservations) == set(self.made) - self.ended
        for replica in self.fleet.replicas.values():
            mine = [r for r in self.fleet.reservations.values() if r.replica == replica.name]
            assert replica.turns == len(mine)
            assert replica.prefill == sum(r.prefill for r in mine)
            assert replica.context == sum(r.context for r in mine)
            assert replica.minding == sum(r.minding for r in mine)

    def teardown(self) -> None:
        for name in self.made:
            self.fleet.release(name)
        assert not self.fleet.reservations
        assert all(
            (r.turns, r.prefill, r.context) == (0, 0, 0) for r in self.fleet.replicas.values()
        )


TestFleetMachine = FleetMachine.TestCase
TestFleetMachine.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


def reserve(fleet: Fleet, now: float = 0.0) -> str:
    return fleet.reserve("a", turn="t", owner="", uncached=8, prompt=8, osl=8, now=now).id


def test_a_turn_that_begins_lives_past_the_time_to_begin() -> None:
    fleet = Fleet(begin_ttl=10, turn_ttl=100)
    fleet.join("a", INFO)
    lost, kept = reserve(fleet), reserve(fleet)
    fleet.begun(kept, 5.0)
    assert [r.id for r in fleet.expire(10.0)] == [lost]
    assert fleet.expire(104.9) == []
    assert [r.id for r in fleet.expire(105.0)] == [kept]


def test_what_a_replica_reports_beyond_ours_is_foreign() -> None:
    fleet = Fleet()
    fleet.join("a", INFO)
    reserve(fleet)
    fleet.report("a", Report(running=2, waiting=1, prefill_tokens=10))
    replica = fleet.replicas["a"]
    assert (replica.active, replica.foreign_prefill, replica.full) == (3, 2, False)
    reserve(fleet)
    assert replica.full
    fleet.report("a", Report(running=1))
    assert (replica.active, replica.full) == (2, False)


def test_report_that_crossed_a_release_makes_nobody_full() -> None:
    fleet = Fleet()
    fleet.join("a", INFO)
    fleet.report("a", Report())
    fleet.report("a", Report(running=3))
    replica = fleet.replicas["a"]
    assert (replica.active, replica.full) == (0, False)
    fleet.report("a", Report(running=2))
    assert replica.active == 2


def test_a_replica_without_a_bound_is_never_full() -> None:
    fleet = Fleet()
    fleet.join("a", Info(block_size=16))
    fleet.report("a", Report(running=10_000))
    assert not fleet.replicas["a"].full


def test_deadlines_of_released_turns_do_not_pile_up() -> None:
    fleet = Fleet()
    fleet.join("a", INFO)
    for _ in range(5000):
        made = reserve(fleet)
        fleet.begun(made, 0.0)
        fleet.release(made)
    assert len(fleet._deadlines) < 2000
