"""What the router answers, case by case, those of the corpus among them."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from router.blocks import chain
from router.decision import Ask, Choice, Queued, Refusal
from router.kv import KvStored
from router.load import Info, Report
from router.router import Router, Settings

SIZE = 16


def fleet(count: int, *, max_turns: int = 0, settings: Settings | None = None) -> Router:
    router = Router(settings)
    for number in range(count):
        router.join(f"r{number}", Info(SIZE, max_turns))
    return router


def ask(ids: list[int], turn: str = "t", *, exclude: tuple[str, ...] = (), tier: int = 0) -> Ask:
    return Ask(
        turn=turn, hashes=chain(ids, SIZE), prompt_tokens=len(ids), exclude=exclude, tier=tier
    )


def chosen(router: Router, asked: Ask, now: float = 0.0) -> Choice:
    answer = router.choose(asked, now)
    assert isinstance(answer, Choice)
    return answer


def stored(ids: list[int]) -> KvStored:
    hashes = chain(ids, SIZE)
    return KvStored([block ^ 1 for block in hashes], None, ids[: len(hashes) * SIZE], SIZE)


def test_ro_dead_replica() -> None:
    router, ids = fleet(2), list(range(640))
    router.kv("r0", [stored(ids)])
    assert chosen(router, ask(ids)).replica == "r0"
    router.leave("r0")
    answers = [router.choose(ask(ids, f"t{n}"), 1.0) for n in range(20)]
    assert {a.replica for a in answers if isinstance(a, Choice)} == {"r1"}
    assert not [a for a in answers if isinstance(a, Refusal)]


def test_ro_lost_events_resync() -> None:
    router, ids = fleet(1), list(range(SIZE * 10))
    hashes = [block ^ 1 for block in chain(ids, SIZE)]
    events = [
        KvStored([hashes[n]], hashes[n - 1] if n else None, ids[n * SIZE : (n + 1) * SIZE], SIZE)
        for n in range(10)
    ]
    heard = [
        router.kv("r0", [event], number=number)
        for number, event in enumerate(events)
        if number not in {5, 6}
    ]
    assert heard == [True] * 5 + [False] * 3
    assert router.index.overlap(chain(ids, SIZE)) == {}
    assert router.resync("r0", events, number=9)
    assert router.index.overlap(chain(ids, SIZE)) == {"r0": 10}


def test_ro_low_load_spread() -> None:
    router = fleet(3)
    system = list(range(32))
    picked = set()
    for number in range(3):
        made = chosen(router, ask([*system, *([1000 + number] * 480)], f"t{number}"), number)
        picked.add(made.replica)
        router.first_token(made.reservation, number)
        router.kv(made.replica, [stored([*system, *([1000 + number] * 480)])])
        router.release(made.reservation, number + 0.5)  # idle again before the next comes
    assert len(picked) == 3


def test_ro_parent_hash_chain() -> None:
    router, ids = fleet(1), list(range(SIZE * 3))
    router.kv("r0", [KvStored([901, 77], None, ids[: 2 * SIZE], SIZE)])
    router.kv("r0", [KvStored([5], 77, ids[2 * SIZE :], SIZE)])
    assert router.index.overlap(chain(ids, SIZE)) == {"r0": 3}


def test_ro_short_prompt() -> None:
    router = fleet(3)
    loads = Counter(chosen(router, ask([1, 2, 3, 4, 5], f"t{n}")).replica for n in range(30))
    assert max(loads.values()) / (30 / 3) <= 1.3


def test_a_burst_with_one_prefix_stays_together_before_any_event() -> None:
    router, ids = fleet(8), list(range(6400))
    homes = {chosen(router, ask([*ids, n], f"t{n}")).replica for n in range(4)}
    assert len(homes) == 1


def test_a_hot_prefix_gets_a_second_home_and_both_serve_it() -> None:
    router, ids = fleet(4), list(range(3200))
    homes = Counter()
    for number in range(32):
        made = chosen(router, ask([*ids, number], f"t{number}"))
        router.first_token(made.reservation, 0.0)
        homes[made.replica] += 1
    assert len(homes) == 4
    assert max(homes.values()) / 8 <= 1.3
    assert router.counts["overlap"] >= 27


def test_a_turn_that_never_began_takes_its_prediction_back() -> None:
    router, ids = fleet(1), list(range(160))
    made = chosen(router, ask(ids))
    router.release(made.reservation, 1.0)
    assert router.index.overlap(chain(ids, SIZE)) == {}


def test_a_turn_that_began_leaves_its_prediction_for_a_while() -> None:
    router, ids = fleet(1), list(range(160))
    made = chosen(router, ask(ids))
    router.begun(made.reservation, 0.5)
    router.release(made.reservation, 1.0)
    assert router.index.overlap(chain(ids, SIZE)) == {"r0": 10}
    router.expire(120.0)
    assert router.index.overlap(chain(ids, SIZE)) == {}


def test_an_owner_that_died_frees_its_places() -> None:
    router = fleet(1)
    chosen(router, Ask(turn="t", hashes=[], prompt_tokens=1, owner="ingress-1"))
    assert router.release_owner("ingress-1") == 1
    assert router.fleet.replicas["r0"].turns == 0
    assert router.release_owner("ingress-1") == 0


def test_no_replica_and_all_excluded_are_refused() -> None:
    assert router_says(fleet(0)) == "no_replica"
    assert router_says(fleet(2), exclude=("r0", "r1")) == "no_replica"
    assert router_says(fleet(2), exclude=("r1",)) == "r0"


def router_says(router: Router, exclude: tuple[str, ...] = ()) -> str:
    answer = router.choose(ask([1], exclude=exclude), 0.0)
    return answer.replica if isinstance(answer, Choice) else str(getattr(answer, "why", "queued"))


def test_a_full_fleet_refuses_with_the_pace_it_has_seen() -> None:
    router = fleet(1, max_turns=2)
    first = chosen(router, ask([1], "a"), 0.0)
    chosen(router, ask([1], "b"), 0.0)
    router.begun(first.reservation, 0.1)
    router.release(first.reservation, 8.0)
    declined = chosen(router, ask([1], "e"), 8.0)
    router.release(declined.reservation, 8.01)  # it was never begun: no pace of a turn
    chosen(router, ask([1], "c"), 8.0)
    assert router.choose(ask([1], "d"), 8.0) == Refusal("saturated", 4)
    assert router.counts["saturated"] == 1


def test_a_queue_answers_each_turn_once_when_places_come_free() -> None:
    router = fleet(1, max_turns=1, settings=Settings(queue_limit=2, queue_patience=10))
    first = chosen(router, ask([1], "a"))
    assert router.choose(ask([1], "b"), 0.0) == Queued("b", 0)
    assert router.choose(ask([1], "c", tier=1), 0.0) == Queued("c", 0)
    refused = router.choose(ask([1], "d"), 0.0)
    assert isinstance(refused, Refusal)
    assert router.choose(ask([1], "e", tier=2), 0.0) == Queued("e", 0)
    assert [(who.turn, type(what)) for who, what in router.admit(0.0)] == [("b", Refusal)]
    router.release(first.reservation, 1.0)
    assert [(who.turn, type(what)) for who, what in router.admit(1.0)] == [("e", Choice)]
    late = router.admit(10.0)
    assert [(who.turn, getattr(what, "why", "")) for who, what in late] == [
        ("c", "waited_too_long")
    ]
    assert router.admit(11.0) == []


def test_nobody_overtakes_the_queue() -> None:
    router = fleet(1, max_turns=1, settings=Settings(queue_limit=2))
    first = chosen(router, ask([1], "a"))
    router.choose(ask([1], "b"), 0.0)
    router.release(first.reservation, 0.0)
    assert router.choose(ask([1], "c"), 0.0) == Queued("c", 1)
    assert [who.turn for who, _ in router.admit(0.0)] == ["b"]


def test_the_queue_stays_fair_while_the_router_serves_it() -> None:
    router = fleet(1, max_turns=1, settings=Settings(queue_limit=99))

    def wait(turn: str) -> None:
        router.choose(Ask(turn=turn, hashes=[], prompt_tokens=1000, tenant=turn[0]), 0.0)

    def serve() -> str:
        router.release_owner("")
        return "".join(who.turn[0] for who, _ in router.admit(0.0))

    for number in range(20):
        wait(f"b{number}")
    served = [serve() for _ in range(8)]
    for number in range(4):
        wait(f"s{number}")
    served += [serve() for _ in range(4)]
    assert "".join(served) in {"bbbbbbbb" + tail for tail in ("bsbs", "sbsb", "sbbs", "bssb")}


def test_promised_and_kept_overlap_are_counted() -> None:
    router, ids = fleet(1), list(range(160))
    router.kv("r0", [stored(ids)])
    made = chosen(router, ask(ids))
    assert made.overlap_blocks == 10
    assert router.first_token(made.reservation, 1.0, cached_tokens=64)
    assert not router.first_token(made.reservation, 1.0, cached_tokens=64)
    assert router.figures() == {
        "replicas": 1,
        "turns": 1,
        "queued": 0,
        "blocks": 10,
        "predicted": 0,
        "promised": 10,
        "kept": 4,
        "gaps": 0,
        "lost": 0,
        "astray": 60,
        "alarm": 0,
    }


def test_turn_that_an_ingress_placed_is_counted_once_in_place_of_what_it_was_given() -> None:
    router = fleet(2, max_turns=1, settings=Settings(queue_limit=2))
    given = chosen(router, ask([1] * 16, "a"))
    own = Choice("r1" if given.replica == "r0" else "r0", 0, "hashed", "a@1")
    assert router.put(ask([1] * 16, "a"), own, 0.0)
    assert not router.put(ask([1] * 16, "a"), own, 0.0)
    assert not router.release(given.reservation, 0.0)  # the late answer, given back
    assert router.figures()["turns"] == 1
    for name in (given.replica, own.replica):
        router.report(name, Report(running=int(name == own.replica)))
    assert chosen(router, ask([2], "b")).replica == given.replica
    assert isinstance(router.choose(ask([3], "c"), 0.0), Queued)
    assert router.release("a@1", 1.0)
    assert [who.turn for who, _ in router.admit(1.0)] == ["c"]


def test_turn_that_an_ingress_placed_leaves_the_queue() -> None:
    router = fleet(1, max_turns=1, settings=Settings(queue_limit=2))
    chosen(router, ask([1], "a"))
    router.choose(ask([2], "b"), 0.0)
    assert router.put(ask([2], "b"), Choice("r0", 0, "hashed", "b@1"), 0.0)
    assert (len(router.queue), router.figures()["turns"]) == (0, 2)


def test_turn_that_an_ingress_placed_is_one_that_its_tenant_had() -> None:
    router = fleet(1, max_turns=1, settings=Settings(queue_limit=9))
    chosen(router, ask([1], "running"))
    for turn in ("other-0", "a", "other-1"):
        router.choose(replace(ask([2], turn), tenant=turn[0]), 0.0)
    assert router.put(ask([2], "a"), Choice("r0", 0, "hashed", "a@1"), 0.0)
    router.choose(replace(ask([2], "another"), tenant="a"), 0.0)
    assert [one.turn for one in router.queue.line()] == ["other-0", "other-1", "another"]


def test_turn_that_is_over_before_it_is_told_of_is_not_counted() -> None:
    router = fleet(1)
    assert not router.release("a@1", 0.0)
    assert not router.put(ask([1], "a"), Choice("r0", 0, "hashed", "a@1"), 0.0)
    assert router.figures()["turns"] == 0


def test_turn_that_an_ingress_placed_with_a_stranger_changes_nothing() -> None:
    router = fleet(1)
    assert not router.put(ask([1], "a"), Choice("gone", 0, "hashed", "a@1"), 0.0)
    assert router.figures()["turns"] == 0


def test_an_unknown_policy_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="kv, round_robin, least_loaded, sticky"):
        Router(Settings(policy="random"))
