from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from router.blocks import chain
from router.decision import Ask, Choice
from router.kv import KvStored
from router.load import Info, Report
from router.router import Router

SIZE = 4
NAMES = ["a", "b", "c"]
prompt = st.lists(st.integers(0, 1), max_size=16)
prompts = st.lists(st.tuples(st.sampled_from(NAMES), prompt), max_size=12)


def ask(turn: str, ids: list[int]) -> Ask:
    return Ask(turn=turn, hashes=chain(ids, SIZE), prompt_tokens=len(ids))


@given(prompts, prompts, prompts)
def test_a_restored_router_answers_as_the_first_would(held, before, after) -> None:  # type: ignore[no-untyped-def]
    first = Router()
    for name in NAMES:
        first.join(name, Info(SIZE, max_turns=8))
    for name, ids in held:
        whole = len(ids) // SIZE * SIZE
        first.kv(name, [KvStored(chain(ids, SIZE), None, ids[:whole], SIZE)])
    for number, (name, ids) in enumerate(before):
        first.report(name, Report(running=number % 3))
        made = first.choose(ask(f"before-{number}", ids), 10.0)
        if isinstance(made, Choice) and number % 2:
            first.first_token(made.reservation, 11.0)
    first.index.predictions.expire(1000.0)  # predictions stay behind

    second = Router()
    second.restore(first.snapshot(12.0), 5000.0)
    for number, (_, ids) in enumerate(after):
        made = first.choose(ask(f"after-{number}", ids), 12.0)
        assert second.choose(ask(f"after-{number}", ids), 5000.0) == made
    for name in list(first.fleet.reservations):
        assert second.release(name, 5001.0)
    assert not second.fleet.reservations
    assert all(r.turns == r.prefill == r.context == 0 for r in second.fleet.replicas.values())


def test_deadlines_and_event_numbers_travel() -> None:
    first = Router()
    first.join("a", Info(SIZE))
    first.kv("a", [], number=4)
    made = first.choose(ask("t", []), 100.0)
    assert isinstance(made, Choice)
    second = Router()
    second.restore(first.snapshot(110.0), 0.0)
    second.expire(289.0)
    assert second.fleet.reservations
    second.expire(290.0)
    assert not second.fleet.reservations
    assert second.kv("a", [], number=5)
    assert not second.kv("a", [], number=7)


def test_without_blocks_every_member_is_to_be_asked() -> None:
    first = Router()
    for name in NAMES:
        first.join(name, Info(SIZE))
    event = KvStored(chain([0] * 8, SIZE), None, [0] * 8, SIZE)
    first.kv("a", [event], number=4)
    second = Router()
    second.restore(first.snapshot(0.0, blocks=False), 0.0)
    assert second.feed.lost == set(NAMES)
    assert not second.kv("a", [], number=9)
    assert second.resync("a", [event], number=9)
    assert second.index.overlap(chain([0] * 8, SIZE)) == {"a": 2}
    assert second.feed.lost == {"b", "c"}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xc1nonsense", id="not msgpack"),
        pytest.param(msgpack.encode([1, 2]), id="another shape"),
        pytest.param(msgpack.encode([99, 0, None, [], []]), id="another version"),
    ],
)
def test_what_is_no_snapshot_says_what_to_do(data: bytes) -> None:
    with pytest.raises(ValueError, match="start empty"):
        Router().restore(data, 0.0)
