from __future__ import annotations

import asyncio

import pyarrow as pa

from tests.toolruns.sources.play import play, read_all
from toolruns.endings import Ending
from toolruns.sources.generator import GeneratorSource
from toolruns.stream import stream_tool
from toolruns.tool import streaming_tool


class Numbers:
    """Yields numbers, and remembers how many and whether it was closed."""

    def __init__(self, count: int = 10**9, pause: float = 0.0) -> None:
        self.count, self.pause = count, pause
        self.given = 0
        self.closed = False

    async def __call__(self):
        try:
            for n in range(self.count):
                if self.pause:
                    await asyncio.sleep(self.pause)
                self.given += 1
                yield {"n": n}
        finally:
            self.closed = True


async def test_only_what_is_pulled_is_made():
    numbers = Numbers()
    _, view, ending = await play(GeneratorSource(numbers), "count >= 30")
    assert (ending, view["rows"], numbers.given) == (Ending.PREDICATE_SATISFIED, 32, 32)
    assert numbers.closed


async def test_slow_rows_are_shown_as_they_come():
    numbers = Numbers(count=3, pause=0.12)
    live, view, ending = await play(GeneratorSource(numbers))
    assert (ending, view["rows"], view["chunks"]) == (Ending.EXHAUSTED, 3, 3)
    assert live.closed_in is not None


async def test_a_stalled_generator_is_cancelled_and_closed():
    numbers = Numbers(pause=3600)
    live, _, ending = await play(GeneratorSource(numbers), seconds=0.2)
    assert ending is Ending.BUDGET_WALL_CLOCK
    assert numbers.closed
    assert live.closed_in < 0.25


async def test_an_error_of_the_generator_ends_the_run():
    async def broken():
        yield {"n": 1}
        message = "secret path /srv/x"
        raise ValueError(message)

    _, view, ending = await play(GeneratorSource(broken))
    assert ending is Ending.UPSTREAM_ERROR
    assert view["notes"][-1] == "the source failed: ValueError"


async def test_batches_and_lists_pass_whole():
    async def mixed():
        yield {"n": 0}
        yield [{"n": 1}, {"n": 2}]
        yield pa.RecordBatch.from_pydict({"n": [3, 4]})
        yield pa.table({"n": [5]})

    assert [row["n"] for row in await read_all(GeneratorSource(mixed))] == [0, 1, 2, 3, 4, 5]


async def test_stream_tool_shows_synopses_and_stops():
    numbers = Numbers()
    async with stream_tool(GeneratorSource(numbers)) as stream:
        async for synopsis in stream:
            if synopsis["rows"] > 1000:
                stream.stop("enough")
    assert stream.result["reason"] == "model_stopped"
    assert not stream.result["complete"]
    assert numbers.closed
    assert stream.entries[-1].type == "trajectory.terminated"


async def test_leaving_the_block_ends_the_run():
    numbers = Numbers(pause=0.01)
    async with stream_tool(GeneratorSource(numbers)):
        pass
    assert numbers.closed or numbers.given == 0


async def test_stream_tool_with_a_predicate_needs_no_watching():
    async with stream_tool(GeneratorSource(Numbers()), until="sum(n) > 100") as stream:
        shown = [synopsis async for synopsis in stream]
    assert shown == []
    assert stream.result["predicate"]["satisfied_at_row"] == 15


async def test_decorated_generators_are_tools():
    @streaming_tool(mode="unbounded")
    async def counter(start: int, step: int = 1):
        """Counts up."""
        while True:
            yield {"n": start}
            start += step

    assert counter.name == "counter"
    assert counter.contract.mode == "unbounded"
    assert counter.parameters["required"] == ["start"]
    assert counter.schema()["properties"]["step"] == {"type": "integer"}
    _, view, _ = await play(counter.open({"start": 5}, ""), "max(n) >= 9", mode="unbounded")
    assert view["predicate"]["satisfied_at_row"] == 5
