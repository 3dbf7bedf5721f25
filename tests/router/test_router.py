"""Laws of the router, whatever is asked of it and whatever happens to its members."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from router.blocks import chain
from router.decision import Ask, Choice, Queued, Refusal
from router.kv import KvStored
from router.load import Info, Report
from router.policy import POLICIES, Tuning
from router.router import Router, Settings

SIZE = 4
NAMES = ["a", "b", "c"]
prompts = st.lists(st.integers(0, 1), max_size=4 * SIZE)


class RouterMachine(RuleBasedStateMachine):
    """Two routers are told the same: whatever the one answers, so does the other."""

    policy = "kv"

    def __init__(self) -> None:
        super().__init__()
        chosen = Settings(
            policy=self.policy,
            tuning=Tuning(temperature=0.5),
            seed=7,
            queue_limit=3,
            queue_patience=20,
            begin_ttl=10,
            turn_ttl=50,
        )
        self.router, self.twin = Router(chosen), Router(chosen)
        self.now = 0.0
        self.serial = 0
        self.members: set[str] = set()
        self.waiting: dict[str, Ask] = {}
        self.placed: dict[str, str] = {}  # reservation -> replica

    def _both(self, name: str, *args: Any, **kwargs: Any) -> Any:
        answer = getattr(self.router, name)(*args, **kwargs)
        assert getattr(self.twin, name)(*args, **kwargs) == answer
        return answer

    @rule(name=st.sampled_from(NAMES))
    def join(self, name: str) -> None:
        self._both("join", name, Info(SIZE, max_turns=2))
        self.members.add(name)

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        self._both("leave", name)
        self.members.discard(name)

    @rule(name=st.sampled_from(NAMES), running=st.integers(0, 3))
    def report(self, name: str, running: int) -> None:
        self._both("report", name, Report(running=running))

    @rule(name=st.sampled_from(NAMES), prompt=prompts)
    def kv(self, name: str, prompt: list[int]) -> None:
        hashes = chain(prompt, SIZE)
        event = KvStored(hashes, None, prompt[: len(hashes) * SIZE], SIZE)
        assert self._both("kv", name, [event])

    @rule(prompt=prompts, tier=st.integers(0, 1), exclude=st.sets(st.sampled_from(NAMES)))
    def choose(self, prompt: list[int], tier: int, exclude: set[str]) -> None:
        self.serial += 1
        ask = Ask(
            turn=f"t{self.serial}",
            hashes=chain(prompt, SIZE),
            prompt_tokens=len(prompt),
            tier=tier,
            exclude=tuple(sorted(exclude)),
            session=f"s{self.serial % 3}",
        )
        answer = self._both("choose", ask, self.now)
        if isinstance(answer, Queued):
            self.waiting[ask.turn] = ask
        else:
            self._answered(ask, answer)

    def _answered(self, ask: Ask, answer: Choice | Refusal) -> None:
        if isinstance(answer, Refusal):
            assert answer.retry_after >= 1
            assert (answer.why != "no_replica") or not (self.members - set(ask.exclude))
            return
        assert answer.replica in self.members - set(ask.exclude)
        assert answer.overlap_blocks <= len(ask.hashes)
        assert answer.reservation not in self.placed
        self.placed[answer.reservation] = answer.replica

    @rule()
    def admit(self) -> None:
        for ask, answer in self._both("admit", self.now):
            self._answered(self.waiting.pop(ask.turn), answer)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        turn = data.draw(st.sampled_from(sorted(self.waiting)))
        if self._both("cancel", turn):
            del self.waiting[turn]

    @precondition(lambda self: self.placed)
    @rule(data=st.data(), what=st.sampled_from(["begun", "first_token", "release", "release"]))
    def follow(self, data: Any, what: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.placed)))
        stands = name in self.router.fleet.reservations
        assert self._both(what, name, self.now) in {stands, False}
        assert what != "release" or not self._both("release", name, self.now)

    @rule(seconds=st.sampled_from([1.0, 9.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def members_alone_hold_turns(self) -> None:
        fleet = self.router.fleet
        assert set(fleet.replicas) == self.members
        assert {r.replica for r in fleet.reservations.values()} <= self.members
        assert sum(r.turns for r in fleet.replicas.values()) == len(fleet.reservations)

    def teardown(self) -> None:
        self.now += 21
        for ask, answer in self._both("admit", self.now):
            self._answered(self.waiting.pop(ask.turn), answer)
        assert not self.waiting
        for name in self.placed:
            self._both("release", name, self.now)
        self.router.expire(self.now + 1000)
        assert not self.router.fleet.reservations
        assert len(self.router.index.predictions) == 0
        assert all(
            (r.turns, r.prefill, r.context) == (0, 0, 0)
            for r in self.router.fleet.replicas.values()
        )


def _machine(policy: str) -> type:
    case = type(f"{policy}Machine", (RouterMachine,), {"policy": policy}).TestCase
    case.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
    return case


TestKv, TestRoundRobin, TestLeastLoaded, TestSticky = (_machine(policy) for policy in POLICIES)
