from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from actors.engines.engine import Engine, EngineInfo, KvCleared, KvEvent, KvStored
from actors.engines.scripted.engine import ScriptedEngine
from actors.engines.scripted.scenario import Scenario, read
from actors.engines.scripted.settings import ScriptedSettings
from tests.actors.engines.scripted.toy import (
    VOCAB,
    answered,
    ask,
    called,
    decode,
    encode,
    ends,
    job,
    said,
    tool,
    write,
)
from turns.errors import (
    ContextTooLongError,
    EngineError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
)
from turns.frames import Frame


class Bench:
    """An engine with its sinks, and a way to wait for what they get."""

    def __init__(self, engine: ScriptedEngine) -> None:
        self.engine = engine
        self.info: EngineInfo
        self.frames: list[Frame] = []
        self.calls: list[list[Frame]] = []
        self.events: list[KvEvent] = []
        self.grown = asyncio.Event()

    def on_frames(self, frames: list[Frame]) -> None:
        self.calls.append(frames)
        self.frames += frames
        self.grown.set()

    def on_kv(self, events: Sequence[KvEvent]) -> None:
        self.events += events

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not done():
                self.grown.clear()
                await self.grown.wait()

    async def ended(self, *turns: str) -> None:
        await self.until(lambda: all(ends(self.frames, turn) for turn in turns or ("t",)))


@asynccontextmanager
async def running(
    rules: list[dict[str, Any]] | None = None,
    die: Callable[[int], Any] = lambda _: None,
    **settings: Any,
) -> AsyncIterator[Bench]:
    scenario = read({"rules": rules}) if rules else None
    bench = Bench(built(scenario, die, **settings))
    bench.info = await bench.engine.start(on_frames=bench.on_frames, on_kv=bench.on_kv)
    try:
        yield bench
    finally:
        await bench.engine.stop()


def built(
    rules: Scenario | None, die: Callable[[int], Any] = lambda _: None, **settings: Any
) -> ScriptedEngine:
    return ScriptedEngine(
        ScriptedSettings(**settings),
        write=write,
        encode=encode,
        vocab_size=VOCAB,
        rules=rules,
        die=die,
    )


def text(say: str, **rule: Any) -> list[dict[str, Any]]:
    return [{"reply": [{"text": say}], **rule}]


def test_it_is_an_engine() -> None:
    engine: Engine = built(read({"rules": text("x")}))
    assert engine.stats().running == 0


async def test_a_turn_is_said_token_by_token_and_ends_with_the_stop_token() -> None:
    async with running(text("abc")) as bench:
        bench.engine.begin(job(ask("hi")))
        await bench.ended()
    assert [len(frame.ids) for frame in bench.frames] == [1, 1, 1, 1]
    assert decode(said(bench.frames)) == "abc<end>"
    assert (bench.frames[0].cached, ends(bench.frames)) == (0, ["stop"])
    assert bench.info.reads_conversation


async def test_one_call_a_step_carries_all_turns() -> None:
    async with running(text("abcdefgh")) as bench:
        for name in "xyz":
            bench.engine.begin(job(ask("hi"), name))
        await bench.ended("x", "y", "z")
    assert [len(call) for call in bench.calls] == [3] * 9


async def test_counters_are_those_of_the_real_cache() -> None:
    async with running(text("abc"), block_size=4, max_model_len=64) as bench:
        for name in ("one", "two"):
            bench.engine.begin(job(ask("hi"), name, prompt=range(10)))
            await bench.ended(name)
        stats = bench.engine.stats()
    assert [frame.cached for frame in bench.frames if frame.cached >= 0] == [0, 8]
    assert (stats.prompt_tokens_total, stats.cached_tokens_total) == (20, 8)
    assert (stats.output_tokens_total, stats.running, stats.kv_used) == (8, 0, 0.0)
    stored = [event for event in bench.events if isinstance(event, KvStored)]
    assert stored[0].token_ids == list(range(8))
    assert stored[0].parent is None


async def test_the_cache_can_be_reset_when_nobody_holds_it() -> None:
    async with running([{"reply": [{"endless": "x"}]}], block_size=4, max_model_len=9999) as bench:
        bench.engine.begin(job(ask("hi"), prompt=range(10)))
        await bench.until(lambda: bool(bench.frames))
        assert not bench.engine.reset_cache()
        bench.engine.abort("t")
        await bench.ended()
        assert bench.engine.reset_cache()
    assert isinstance(bench.events[-1], KvCleared)


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        pytest.param({"prompt": ()}, InvalidRequestError, "empty", id="empty"),
        pytest.param({"prompt": (1, VOCAB)}, InvalidRequestError, f"id {VOCAB}", id="over"),
        pytest.param({"prompt": (1, -1)}, InvalidRequestError, "id -1", id="negative"),
        pytest.param({"prompt": range(64)}, ContextTooLongError, "64 tokens > 63", id="long"),
    ],
)
async def test_bad_prompts_are_refused_before_anything_begins(
    fields: dict[str, Any], error: type[Exception], says: str
) -> None:
    async with running(text("x"), max_model_len=64) as bench:
        with pytest.raises(error, match=says):
            bench.engine.begin(job(ask("hi"), **fields))
        assert bench.engine.stats().waiting == 0


async def test_a_turn_begun_twice_is_refused() -> None:
    async with running([{"reply": [{"endless": "x"}]}]) as bench:
        bench.engine.begin(job(ask("hi")))
        with pytest.raises(InvalidRequestError, match="running already"):
            bench.engine.begin(job(ask("hi")))


async def test_a_full_queue_is_refused_with_the_time_until_a_seat_is_free() -> None:
    rules = [{"reply": [{"raw": "x" * 100}]}]
    async with running(rules, step_ms=100, max_turns=1, max_waiting=1) as bench:
        bench.engine.begin(job(ask("hi"), "runs"))
        bench.engine.begin(job(ask("hi"), "waits"))
        await bench.until(lambda: bool(bench.frames))
        with pytest.raises(OverloadedError) as refused:
            bench.engine.begin(job(ask("hi"), "too many"))
        # 101 tokens, one or two of them said.
        assert refused.value.retry_after in (10, 11)


async def test_the_window_cuts_what_never_ends() -> None:
    async with running([{"reply": [{"endless": "ab"}]}], max_model_len=30) as bench:
        bench.engine.begin(job(ask("hi"), prompt=range(5, 15)))
        await bench.ended()
    assert decode(said(bench.frames)) == "ab" * 10
    assert ends(bench.frames) == ["length"]


async def test_max_tokens_cuts_with_length() -> None:
    async with running(text("abcdef")) as bench:
        bench.engine.begin(job(ask("hi"), max_tokens=4))
        await bench.ended()
    assert (decode(said(bench.frames)), ends(bench.frames)) == ("abcd", ["length"])


async def test_abort_reaches_the_sink_before_the_step_under_way_is_over() -> None:
    async with running(text("abc"), step_ms=60_000) as bench:
        bench.engine.begin(job(ask("hi")))
        bench.engine.abort("t")
        bench.engine.abort("nobody")
        assert bench.frames == []  # never from inside the call
        await bench.ended()
        assert ends(bench.frames) == ["abort"]
        assert bench.engine.stats().aborts_total == 1
        await bench.engine.drain(10)


async def test_priorities_are_served_first() -> None:
    async with running(text("ab"), max_turns=1) as bench:
        bench.engine.begin(job(ask("hi"), "low", priority=5))
        bench.engine.begin(job(ask("hi"), "high", priority=-5))
        await bench.ended("low", "high")
    assert [frame.turn for frame in bench.frames if frame.finish] == ["high", "low"]


async def test_drain_takes_no_new_turn_and_waits_for_the_old_ones() -> None:
    async with running(text("abcdef")) as bench:
        bench.engine.begin(job(ask("hi")))
        await bench.engine.drain(20)
        assert ends(bench.frames) == ["stop"]
        with pytest.raises(UnavailableError):
            bench.engine.begin(job(ask("hi"), "late"))


async def test_drain_gives_up_after_its_time() -> None:
    async with running([{"reply": [{"endless": "x"}]}]) as bench:
        bench.engine.begin(job(ask("hi")))
        await bench.engine.drain(0.01)
        assert bench.engine.stats().running == 1


async def test_stop_ends_what_still_runs() -> None:
    async with running([{"reply": [{"endless": "x"}]}]) as bench:
        bench.engine.begin(job(ask("hi")))
        await bench.until(lambda: bool(bench.frames))
    assert ends(bench.frames) == ["abort"]
    with pytest.raises(EngineError, match="not running"):
        await bench.engine.check()


async def test_an_engine_that_raises_is_dead_and_every_turn_in_it_ends() -> None:
    rules = [
        {
            "when": {"user_contains": "die"},
            "reply": [{"text": "abcdef"}],
            "crash_after": {"tokens": 2, "how": "raise"},
        },
        {"reply": [{"endless": "x"}]},
    ]
    async with running(rules) as bench:
        bench.engine.begin(job(ask("hi"), "bystander"))
        bench.engine.begin(job(ask("die"), "culprit"))
        await bench.ended("bystander", "culprit")
        assert decode(said(bench.frames, "culprit")) == "ab"
        assert ends(bench.frames, "bystander") == ["error"]
        with pytest.raises(EngineError, match="restart the replica"):
            await bench.engine.check()
        with pytest.raises(EngineError):
            bench.engine.begin(job(ask("hi"), "next"))


async def test_an_engine_that_exits_takes_the_process_with_it() -> None:
    codes: list[int] = []
    async with running(text("abc", crash_after=1), codes.append) as bench:
        bench.engine.begin(job(ask("hi")))
        await bench.ended()
    assert codes == [70]


async def test_a_stalled_engine_fails_its_check() -> None:
    rule = text("abc", hang_after={"tokens": 1, "scope": "engine"})
    async with running(rule, hang_s=0.0) as bench:
        bench.engine.begin(job(ask("hi")))
        await bench.until(lambda: bool(bench.frames))
        with pytest.raises(EngineError, match="hangs"):
            await bench.engine.check()


async def test_a_healthy_engine_passes_its_check() -> None:
    async with running(text("abc")) as bench:
        await bench.engine.check()
        bench.engine.begin(job(ask("hi")))
        await bench.ended()
        await bench.engine.check()


async def test_a_sink_that_breaks_kills_the_engine_and_is_told() -> None:
    async with running(text("abc")) as bench:

        def broken(frames: list[Frame]) -> None:
            bench.on_frames(frames)
            if not ends(frames):
                raise RuntimeError("the lane is gone")

        await bench.engine.stop()
        engine = built(read({"rules": text("abc")}))
        await engine.start(on_frames=broken, on_kv=bench.on_kv)
        engine.begin(job(ask("hi")))
        await bench.ended()
        with pytest.raises(EngineError, match="the lane is gone"):
            await engine.check()
        await engine.stop()


async def test_a_resumed_turn_goes_on_where_it_was_lost() -> None:
    async with running(text("abcdef")) as bench:
        begun = [*range(5, 15), *encode("abc")]
        bench.engine.begin(job(ask("hi"), prompt=begun, resumed=3))
        await bench.ended()
        assert decode(said(bench.frames)) == "def<end>"
        with pytest.raises(InvalidRequestError, match="not the start"):
            bench.engine.begin(job(ask("hi"), "other", prompt=encode("abX"), resumed=3))


async def test_a_request_may_bring_its_reply_only_where_that_is_switched_on() -> None:
    turn = ask("hi", template_kwargs={"scripted": {"reply": [{"text": "mine"}]}})
    for inline, expected in ((True, "mine<end>"), (False, "x<end>")):
        async with running(text("x"), inline=inline) as bench:
            bench.engine.begin(job(turn))
            await bench.ended()
            assert decode(said(bench.frames)) == expected


async def test_a_bad_inline_rule_is_the_clients_fault() -> None:
    turn = ask("hi", template_kwargs={"scripted": {"reply": [{"txt": "mine"}]}})
    async with running(text("x"), inline=True) as bench:
        with pytest.raises(InvalidRequestError, match="txt"):
            bench.engine.begin(job(turn))


async def test_the_default_scenario_calls_once_and_answers_from_the_result() -> None:
    shell = tool("bash", ["command"], command={"type": "string"})
    async with running() as bench:
        bench.engine.begin(job(ask("Run it", tools=[shell]), "one"))
        turn = ask("Run it", called(), answered("hi-from-tool\n"), tools=[shell])
        bench.engine.begin(job(turn, "two"))
        await bench.ended("one", "two")
    assert decode(said(bench.frames, "one")).endswith(
        '<call>{"name":"bash","arguments":{"command":"echo hi-from-tool"}}</call><end>'
    )
    assert "hi-from-tool\n\n\nFINAL-OK<end>" in decode(said(bench.frames, "two"))


async def test_a_missing_scenario_is_told_at_the_start() -> None:
    engine = built(None, scenario="/nowhere.yaml")
    with pytest.raises(EngineError, match=r"/nowhere\.yaml"):
        await engine.start(on_frames=lambda _: None, on_kv=lambda _: None)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        pytest.param(
            {"kv_blocks": 10, "block_size": 16, "max_model_len": 161}, "at least 11", id="window"
        ),
        pytest.param({"block_size": 0}, "block_size", id="block"),
        pytest.param({"max_waiting": -1}, "max_waiting", id="queue"),
        pytest.param({"step_ms": -1.0}, "step_ms", id="pace"),
        pytest.param({"prefill_chunk": 0}, "prefill_chunk", id="chunk"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ScriptedSettings(**settings)
