"""A real vLLM on the CPU: one engine with a tiny random model for the file."""

from __future__ import annotations

import json

import pytest

from actors.engines.engine import KvStored
from tests.actors.engines.vllm.driven import THINKING, Driven, job
from turns.errors import InvalidRequestError

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(400),  # the first test starts the engine
    pytest.mark.filterwarnings("ignore"),  # torch and vLLM warn as they are imported
]

LONG = 400  # tokens; more than any test waits for


def prompt(start: int, length: int = 100) -> list[int]:
    """Ordinary token ids that no other test uses, so that nothing of them is cached."""
    return [1000 + (start * 1009 + 7 * i) % 40_000 for i in range(length)]


async def test_engine_says_what_it_is(driven: Driven) -> None:
    info = driven.info
    assert (info.block_size, info.max_model_len, info.vocab_size) == (32, 4096, 49_152)
    assert info.max_turns == 4
    assert info.kv_blocks > 0
    await driven.engine.check()


async def test_tokens_stream_a_frame_a_step(driven: Driven) -> None:
    assert len(await driven.answer(job("stream", prompt(1), tokens=12))) == 12
    frames = driven.frames["stream"]
    assert len(frames) == 12
    assert [frame.cached for frame in frames] == [0] + [-1] * 11
    assert [frame.finish for frame in frames] == [None] * 11 + ["length"]


async def test_second_turn_finds_the_first_in_the_cache(driven: Driven) -> None:
    first = prompt(2)
    answer = await driven.answer(job("first", first))
    second = [*first, *answer, *prompt(3, 20)]
    await driven.answer(job("second", second))
    # 100 + 8 tokens, of which the last was never computed upon: three whole blocks of 32.
    assert driven.frames["second"][0].cached == 96


async def test_cached_and_cold_answers_are_the_same(driven: Driven) -> None:
    cold = await driven.answer(job("cold", prompt(4), tokens=16))
    warm = await driven.answer(job("warm", prompt(4), tokens=16))
    assert driven.frames["warm"][0].cached == 96
    assert cold == warm


async def test_salt_separates_caches(driven: Driven) -> None:
    for turn, salt, cached in (
        ("s1", "", 0),
        ("s2", "team", 0),
        ("s3", "team", 96),
        ("s4", "", 96),
    ):
        await driven.answer(job(turn, prompt(5), salt=salt))
        assert driven.frames[turn][0].cached == cached


async def test_a_step_of_several_turns_is_one_call(driven: Driven) -> None:
    turns = ["b1", "b2", "b3", "b4"]
    before = len(driven.batches)
    for number, turn in enumerate(turns):
        driven.engine.begin(job(turn, prompt(10 + number), tokens=20))
    await driven.finish(*turns)
    calls = driven.batches[before:]
    assert sum(len(call) for call in calls) == 80
    assert max(len(call) for call in calls) == 4
    assert len(calls) < 50  # 20 steps, and what the turns were apart when they began


async def test_abort_ends_at_once_and_frees_the_engine(driven: Driven) -> None:
    driven.engine.begin(job("gone", prompt(20), tokens=LONG))
    await driven.until(lambda: driven.frames.get("gone"))
    driven.engine.abort("gone")
    await driven.finish("gone")
    assert driven.frames["gone"][-1].finish == "abort"
    stats = driven.engine.stats()
    assert (stats.running, stats.waiting, stats.kv_used) == (0, 0, 0.0)
    # vLLM itself holds nothing of it any more: a full batch runs at once.
    for number in range(4):
        driven.engine.begin(job(f"after{number}", prompt(21 + number), tokens=2))
    await driven.finish(*(f"after{number}" for number in range(4)))
    assert driven.ids("after0")


async def test_an_id_outside_the_vocabulary_is_refused_and_the_engine_lives(driven: Driven) -> None:
    with pytest.raises(InvalidRequestError, match="49152 is outside the vocabulary"):
        driven.engine.begin(job("bad", [5, driven.info.vocab_size]))
    assert len(await driven.answer(job("good", prompt(30), tokens=3))) == 3
    await driven.engine.check()


async def test_lower_priority_numbers_run_first(driven: Driven) -> None:
    for number in range(4):
        driven.engine.begin(job(f"fill{number}", prompt(40 + number), tokens=60))
    await driven.until(lambda: all(driven.frames.get(f"fill{n}") for n in range(4)))
    driven.engine.begin(job("late", prompt(45), tokens=2, priority=5))
    driven.engine.begin(job("soon", prompt(46), tokens=2, priority=-5))
    await driven.finish("late", "soon")
    order = [frame.turn for batch in driven.batches for frame in batch]
    assert order.index("soon") <= order.index("late")
    first_late = next(i for i, b in enumerate(driven.batches) if any(f.turn == "late" for f in b))
    first_soon = next(i for i, b in enumerate(driven.batches) if any(f.turn == "soon" for f in b))
    assert first_soon <= first_late
    for number in range(4):
        driven.engine.abort(f"fill{number}")


async def test_without_max_tokens_the_answer_ends_at_the_window(driven: Driven) -> None:
    made = await driven.answer(job("window", prompt(50, 4072), tokens=None))
    assert driven.frames["window"][-1].finish == "length"
    assert len(made) == 24


async def test_a_stop_id_ends_the_turn_and_is_part_of_the_ids(driven: Driven) -> None:
    free = await driven.answer(job("free", prompt(60), tokens=12))
    stop = free[4]
    upto = free[: free.index(stop) + 1]
    assert await driven.answer(job("stopped", prompt(60), tokens=12, stop_ids=(stop,))) == upto
    assert driven.frames["stopped"][-1].finish == "stop"


async def test_kv_events_tell_the_blocks_of_a_prompt(driven: Driven) -> None:
    tokens = prompt(70)
    await driven.answer(job("kv", tokens, salt="tenant", tokens=2))

    def told() -> list[KvStored]:
        return [e for e in driven.kv if isinstance(e, KvStored) and e.token_ids[:1] == tokens[:1]]

    await driven.until(told)
    (event,) = told()
    assert event.token_ids == tokens[:96]
    assert len(event.block_hashes) == 3
    assert (event.parent, event.block_size, event.salt) == (None, 32, "tenant")


async def test_a_json_constraint_shapes_the_answer(driven: Driven) -> None:
    # No object here: between its parts a random model would write white space for ever.
    constraint = {"json": {"enum": ["north", "south"]}}
    made = await driven.answer(job("json", prompt(80), tokens=64, constraint=constraint))
    assert driven.frames["json"][-1].finish == "stop"
    assert json.loads(driven.text(made)) in {"north", "south"}


async def test_a_structural_tag_shapes_the_answer(driven: Driven) -> None:
    tag = {
        "type": "structural_tag",
        "format": {
            "type": "tag",
            "begin": "<call>",
            "content": {"type": "json_schema", "json_schema": {"enum": ["north"]}},
            "end": "</call>",
        },
    }
    made = await driven.answer(
        job("tag", prompt(81), tokens=64, constraint={"structural_tag": tag})
    )
    assert driven.text(made).startswith('<call>"north"</call>')


async def test_a_broken_schema_fails_its_turn_alone(driven: Driven) -> None:
    driven.engine.begin(job("broken", prompt(82), constraint={"json": {"type": "nonsense"}}))
    await driven.finish("broken")
    assert driven.frames["broken"][-1].finish == "error"
    assert driven.frames["broken"][-1].error
    assert len(await driven.answer(job("fine", prompt(83), tokens=2))) == 2


async def test_a_thinking_budget_closes_the_reasoning(driven: Driven) -> None:
    opened, closed = (driven.token(text) for text in THINKING)
    made = await driven.answer(
        job("think", [*prompt(90, 40), opened], tokens=12, thinking_budget=5)
    )
    assert made.index(closed) == 5
