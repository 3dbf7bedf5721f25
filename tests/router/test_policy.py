from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.cost import Weights, cost, draw, minding
from router.decision import Ask
from router.load import Info, Replica, Report
from router.policy import POLICIES, Tuning, View, kv, least_loaded, round_robin, sticky

SIZE = 16


def view(
    *replicas: Replica, prompt: int = 1600, tuning: Tuning | None = None, **overlap: int
) -> View:
    ask = Ask(turn="t", hashes=[1, 2], prompt_tokens=prompt, session="s")
    return View(ask, replicas, overlap, SIZE, tuning or Tuning(), 0.5)


def replica(
    name: str, turns: int = 0, prefill: int = 0, last: int = 0, waiting: int = 0
) -> Replica:
    made = Replica(name, Info(SIZE), turns, prefill, 256 * turns, 1600 * turns)
    made.last_chosen = last
    made.report = Report(waiting=waiting)
    return made


@pytest.mark.parametrize(
    ("seen", "name", "why"),
    [
        pytest.param(view(replica("a"), replica("b"), b=90), "b", "overlap", id="long prefix"),
        pytest.param(
            view(replica("a"), replica("b", turns=2), b=90), "b", "overlap", id="some load"
        ),
        pytest.param(
            view(replica("a"), replica("b", turns=1, prefill=9000), b=90),
            "a",
            "load",
            id="its prefill queue outweighs the prefix",
        ),
        pytest.param(
            view(replica("a", turns=1), replica("b", turns=16), b=90),
            "a",
            "spread",
            id="holder far over the mean",
        ),
        pytest.param(
            view(replica("a"), replica("b", last=4), b=2), "a", "load", id="tiny prefix, idle"
        ),
        pytest.param(
            view(replica("a", waiting=4), replica("b", turns=3)), "b", "load", id="engine queue"
        ),
        pytest.param(
            view(replica("a", turns=12), replica("b", turns=1), replica("c"), a=90, b=90),
            "b",
            "overlap",
            id="one holder sheds, the other keeps its credit",
        ),
    ],
)
def test_kv_picks(seen: View, name: str, why: str) -> None:
    best, said = kv(seen)
    assert (best.name, said) == (name, why)


def test_least_loaded_looks_at_turns_then_prefill_then_at_who_waited_longest() -> None:
    assert least_loaded(view(replica("a", 2), replica("b", 1), a=90))[0].name == "b"
    assert least_loaded(view(replica("a", 1, 9), replica("b", 1, 8)))[0].name == "b"
    assert least_loaded(view(replica("a", last=2), replica("b", last=1)))[0].name == "b"


def test_round_robin_takes_the_one_chosen_longest_ago() -> None:
    assert round_robin(view(replica("a", last=3), replica("b", 9, last=2)))[0].name == "b"


def test_sticky_moves_only_the_sessions_of_the_replica_that_left() -> None:
    names = [replica(name) for name in "abcd"]

    def home(session: str, of: list[Replica]) -> str:
        ask = Ask(turn="t", hashes=[], prompt_tokens=1, session=session)
        return sticky(View(ask, of, {}, SIZE, Tuning(), 0.0))[0].name

    sessions = [f"session-{n}" for n in range(400)]
    before = {session: home(session, names) for session in sessions}
    after = {session: home(session, names[:3]) for session in sessions}
    assert all(after[s] == before[s] for s in sessions if before[s] != "d")
    assert min(Counter(before.values()).values()) > 60


def test_sticky_without_a_session_goes_by_the_head_of_the_prompt() -> None:
    names = [replica(name) for name in "abcd"]

    def home(turn: str, hashes: list[int]) -> str:
        ask = Ask(turn=turn, hashes=hashes, prompt_tokens=1)
        return sticky(View(ask, names, {}, SIZE, Tuning(), 0.0))[0].name

    assert len({home(f"turn-{n}", [7, n]) for n in range(20)}) == 1
    assert len({home(f"turn-{n}", []) for n in range(20)}) > 1


def test_an_overlap_never_makes_a_prompt_free() -> None:
    assert cost(Weights(), 32, 48, replica("a")) == 1


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.floats(0.01, 10), st.floats(0, 0.999)
)
def test_draw_answers_a_place(costs: list[float], temperature: float, chance: float) -> None:
    assert 0 <= draw(costs, temperature, chance) < len(costs)


def test_a_long_answer_weighs_more_than_a_short_one() -> None:
    short, long = replica("a", turns=2), replica("b", turns=2)
    long.decode = 4000
    both = [cost(Weights(), 1600, 0, one, osl=3000) for one in (short, long)]
    assert both[1] - both[0] == 2 * (4000 - 512)
    both = [cost(Weights(), 1600, 0, one, osl=10) for one in (short, long)]
    assert both[1] == both[0]  # over before either of them


@pytest.mark.parametrize(
    ("latency", "expected"),
    [
        pytest.param(None, 0, id="not said"),
        pytest.param(0.0, 0, id="batch"),
        pytest.param(0.5, 0, id="as usual"),
        pytest.param(0.75, 50, id="half"),
        pytest.param(1.0, 100, id="above all"),
    ],
)
def test_who_minds_slow_tokens_minds_prompts_beside_him(
    latency: float | None, expected: int
) -> None:
    assert minding(latency) == expected


def test_long_prompts_keep_away_from_turns_that_mind_slow_tokens() -> None:
    quiet, busy = replica("a", turns=1), replica("b", turns=3)
    assert kv(view(quiet, busy, prompt=16_000))[0].name == "a"
    quiet.minding = 100
    assert kv(view(quiet, busy, prompt=16_000))[0].name == "b"
    assert kv(view(quiet, busy, prompt=16_000, a=990))[0].name == "a"  # little to compute there


def test_draw_prefers_the_cheap_and_spreads_with_temperature() -> None:
    def shares(temperature: float) -> Counter[int]:
        return Counter(draw([0.0, 50.0, 100.0], temperature, n / 1000) for n in range(1000))

    cold, warm = shares(0.05), shares(1.0)
    assert cold[0] > 990
    assert warm[0] > warm[1] > warm[2] > 100


def test_temperature_lets_chance_decide() -> None:
    warm = Tuning(temperature=5.0)
    ask = Ask(turn="t", hashes=[], prompt_tokens=1600)
    picks = {
        kv(View(ask, [replica("a"), replica("b")], {"b": 90}, SIZE, warm, n / 10))[0].name
        for n in range(10)
    }
    assert picks == {"a", "b"}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_copes_with_a_fleet_of_one(policy: str) -> None:
    only = replica("a", 3)
    assert POLICIES[policy](view(only))[0] is only


def test_overloaded_holder_sheds_what_many_have_and_keeps_what_is_one_turns_alone() -> None:
    full = [replica("a", turns=16), replica("b"), replica("c")]
    many, alone = view(*full, prompt=40_000, a=2400, b=2390), view(*full, prompt=190_000, a=11_000)
    assert kv(many) == (full[1], "overlap")
    assert kv(alone) == (full[0], "overlap")
    assert kv(view(*full, prompt=9_000, a=560))[1] == "spread"
