"""The engine's own bookkeeping, over a core that makes what the test says. No vLLM is needed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors.engines.engine import EngineInfo
from actors.engines.vllm import VllmSettings
from tests.actors.engines.vllm.driven import Driven, job
from turns.errors import (
    ContextTooLongError,
    EngineError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
)
from turns.frames import Frame, Job

INFO = EngineInfo(block_size=4, max_model_len=32, vocab_size=100, max_turns=2, kv_blocks=10)


class FakeCore:
    """Stands where vLLM would: `made` is called by the test as vLLM would call it."""

    info = INFO

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}
        self.failed: dict[str, Any] = {}
        self.aborted: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuses: Exception | None = None
        self.why_dead = ""
        self.closed = False

    def params(self, work: Job, room: int) -> int:
        if work.sampling.temperature == -1:
            raise ValueError("temperature must be non-negative")
        return room

    async def add(self, work: Job, _params: int, made: Any, failed: Any) -> str:
        await self.gate.wait()
        if self.refuses is not None:
            raise self.refuses
        self.made[work.turn], self.failed[work.turn] = made, failed
        return f"vllm-{work.turn}"

    async def abort(self, name: str) -> None:
        self.aborted.append(name)

    def dead(self) -> str:
        return self.why_dead

    def close(self) -> None:
        self.closed = True


class Rig(Driven):
    def __init__(self, **fields: Any) -> None:
        super().__init__(VllmSettings(model="none", kv_events=False, **fields))
        self.core = FakeCore()
        self.engine._open = lambda: self.core  # type: ignore[method-assign,return-value,assignment]


async def settled() -> None:
    """Everything that was ready to run on the loop has run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def started(**fields: Any) -> Rig:
    rig = Rig(**fields)
    assert await rig.start() == INFO
    return rig


async def test_a_step_of_all_turns_is_one_call() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1, 2]))
    rig.engine.begin(job("b", [3]))
    await settled()
    rig.core.made["a"]([7], 0, None)
    rig.core.made["b"]([8, 9], 0, None)
    await settled()
    assert rig.batches == [[Frame("a", [7], cached=0), Frame("b", [8, 9], cached=0)]]


async def test_cached_tokens_stand_on_the_first_frame_alone() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1, 2, 3, 4, 5]))
    await settled()
    rig.core.made["a"]([7], 4, None)
    rig.core.made["a"]([8], 4, "stop")
    await settled()
    assert [frame.cached for frame in rig.frames["a"]] == [4, -1]
    assert rig.frames["a"][-1].finish == "stop"


async def test_stats_follow_the_turns_and_return_to_zero() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1, 2, 3, 4]))
    rig.engine.begin(job("b", [1, 2, 3]))
    await settled()
    rig.core.made["a"]([7], 4, None)
    now = rig.engine.stats()
    assert (now.running, now.waiting, now.prefill_tokens, now.kv_used) == (1, 1, 3, 0.2)
    rig.core.made["a"]([7], 4, "length")
    rig.engine.abort("b")
    end = rig.engine.stats()
    assert (end.running, end.waiting, end.prefill_tokens, end.kv_used) == (0, 0, 0, 0.0)
    assert (end.prompt_tokens_total, end.cached_tokens_total, end.output_tokens_total) == (4, 4, 2)
    assert end.aborts_total == 1


async def test_abort_ends_the_turn_at_once_and_later_tokens_are_dropped() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1]))
    await settled()
    rig.core.made["a"]([7], 0, None)
    rig.engine.abort("a")
    rig.core.made["a"]([8], 0, "abort")
    await settled()
    assert [(f.ids, f.finish) for f in rig.frames["a"]] == [([7], None), ([], "abort")]
    assert rig.core.aborted == ["vllm-a"]


async def test_abort_of_a_turn_on_its_way_in_reaches_vllm_once_it_is_in() -> None:
    rig = await started()
    rig.core.gate.clear()
    rig.engine.begin(job("a", [1]))
    await settled()
    rig.engine.abort("a")
    assert not rig.core.aborted
    rig.core.gate.set()
    await settled()
    assert rig.core.aborted == ["vllm-a"]
    assert [f.finish for f in rig.frames["a"]] == ["abort"]


async def test_abort_of_an_unknown_turn_is_no_error() -> None:
    rig = await started()
    rig.engine.abort("nobody")
    await settled()
    assert rig.batches == []


async def test_a_turn_may_begin_again_under_the_name_of_an_aborted_one() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1]))
    await settled()
    first = rig.core.made["a"]
    rig.engine.abort("a")
    rig.engine.begin(job("a", [1]))
    await settled()
    first([7], 0, None)
    rig.core.made["a"]([8], 0, "stop")
    await settled()
    assert rig.ids("a") == [8]


@pytest.mark.parametrize(
    ("work", "error"),
    [
        pytest.param(job("a", []), InvalidRequestError, id="empty"),
        pytest.param(job("a", [100]), InvalidRequestError, id="outside-vocabulary"),
        pytest.param(job("a", [-1]), InvalidRequestError, id="negative"),
        pytest.param(job("a", [1] * 32), ContextTooLongError, id="too-long"),
        pytest.param(job("a", [1], temperature=-1), InvalidRequestError, id="what-vllm-refuses"),
    ],
)
async def test_bad_jobs_are_refused_before_the_engine(
    work: Job, error: type[InvalidRequestError]
) -> None:
    rig = await started()
    with pytest.raises(error):
        rig.engine.begin(work)
    await settled()
    assert not rig.core.made
    assert rig.engine.stats().waiting == 0


async def test_the_same_turn_twice_is_refused() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1]))
    with pytest.raises(InvalidRequestError, match="a runs already"):
        rig.engine.begin(job("a", [1]))


async def test_over_the_queue_is_overload() -> None:
    rig = await started(max_queued=1)
    for turn in ("a", "b", "c"):
        rig.engine.begin(job(turn, [1]))
    with pytest.raises(OverloadedError):
        rig.engine.begin(job("d", [1]))


async def test_a_refusal_on_the_way_in_is_an_error_frame() -> None:
    rig = await started()
    rig.core.refuses = ValueError("the schema is not supported")
    rig.engine.begin(job("a", [1]))
    await rig.finish("a")
    assert rig.frames["a"][-1].finish == "error"
    assert "schema is not supported" in rig.frames["a"][-1].error


async def test_a_dead_engine_ends_its_turns_and_takes_no_more() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1]))
    await settled()
    rig.core.why_dead = "the vLLM engine died"
    rig.core.failed["a"]("the vLLM engine died")
    await rig.finish("a")
    assert rig.frames["a"][-1].error == "the vLLM engine died"
    with pytest.raises(EngineError):
        rig.engine.begin(job("b", [1]))
    with pytest.raises(EngineError):
        await rig.engine.check()


async def test_a_silent_engine_counts_as_dead_only_while_turns_run() -> None:
    rig = await started(hang_after=-1.0)
    await rig.engine.check()
    rig.engine.begin(job("a", [1]))
    with pytest.raises(EngineError, match="no step"):
        await rig.engine.check()


async def test_drain_waits_for_running_turns_and_takes_no_new_one() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1]))
    await settled()
    draining = asyncio.create_task(rig.engine.drain(30))
    await settled()
    assert not draining.done()
    with pytest.raises(UnavailableError):
        rig.engine.begin(job("b", [1]))
    rig.core.made["a"]([7], 0, "stop")
    await asyncio.wait_for(draining, 30)
    assert rig.ids("a") == [7]


async def test_drain_gives_up_at_its_timeout() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1]))
    await asyncio.wait_for(rig.engine.drain(0.01), 30)
    assert rig.engine.stats().waiting == 1


async def test_stop_ends_what_still_runs_with_an_error() -> None:
    rig = await started()
    rig.engine.begin(job("a", [1]))
    await settled()
    await rig.engine.stop()
    assert [f.finish for f in rig.frames["a"]] == ["error"]
    assert rig.core.closed
    with pytest.raises(EngineError, match="not running"):
        rig.engine.begin(job("b", [1]))


async def test_a_failed_start_says_which_model_and_why() -> None:
    rig = Rig()

    def broken() -> FakeCore:
        raise OSError("no config.json")

    rig.engine._open = broken  # type: ignore[method-assign,assignment]
    with pytest.raises(EngineError, match=r"none: no config\.json"):
        await rig.start()
