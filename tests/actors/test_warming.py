"""Warming: what is under way ends when the real turn comes, and pins are bounded and touched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from actors import warming
from actors.fleet import Fleet
from actors.keeper import Keeper
from actors.messages import ReplicaCard
from actors.replay import Prepared
from actors.warming import REFRESH, Ended, Warmer, next_turn, shared
from prompts.prompter import Prompt
from sessions.memory_store import MemoryStore
from tests.serving.waits import until
from turns.blocks import Text, ToolCall, ToolResult
from turns.errors import UnavailableError
from turns.events import Usage
from turns.frames import Job, ParseSpec, Picture
from turns.reply import Reply
from turns.turn import Sampling, Turn

CALL = ToolCall("c", "bash", "{}")
REPLY = Reply((Text("so"), CALL), "tool_use", Usage(100, 0, 5))
OUTPUT = [901, 902, 903]


class Conductor:
    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.cancelled: list[str] = []
        self.watches: dict[str, Any] = {}

    def begin(self, job: Job, call: Any, replicas: Sequence[str], sink: Any, watch: Any) -> str:
        self.jobs.append(job)
        self.watches[job.turn] = watch
        assert list(replicas) == ["r"]
        return job.turn

    def cancel(self, flight: str) -> None:
        self.cancelled.append(flight)
        self.watches[flight].landed(1)


class Model:
    """A model whose prompts are what the test says."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self.fleet.replace({"r": ReplicaCard("r", "m", 4, 1000, 8, [])})
        self.lease = None

    def job(self, turn: Turn, prompt: Prompt) -> Job:
        sampling = Sampling(max_tokens=turn.sampling.max_tokens)
        return Job(turn.id, prompt.ids, sampling, ParseSpec("f", ""))


def prompt(ids: list[int]) -> Prompt:
    return Prompt(ids=ids, tail="", stop_ids=(), thinking_budget=None)


def ended(ids: list[int], *, owner: str = "o", session: str = "s", **told: Any) -> Ended:
    turn = Turn("t", "chat", "m", (), session=session)
    prepared = Prepared(turn, None, prompt(ids), owner)  # type: ignore[arg-type]
    return Ended(Model(), prepared, "r", REPLY, [*ids, *OUTPUT[:-1]], **told)  # type: ignore[arg-type]


def rendered(head: list[int]) -> Callable[[Turn], Any]:
    """Renders every next turn as `head` and the result's text."""

    async def prepare(turn: Turn) -> Prepared:
        result = turn.messages[-1].blocks[0]
        assert isinstance(result, ToolResult)
        text = result.content[0]
        assert isinstance(text, Text)
        await asyncio.sleep(0)
        return Prepared(turn, None, prompt([*head, ord(text.text), 7]), "o")  # type: ignore[arg-type]

    return prepare


@pytest.fixture
def conductor() -> Conductor:
    return Conductor()


def made(conductor: Conductor, now: list[float], store: MemoryStore | None = None) -> Warmer:
    keeper, clock = Keeper(store or MemoryStore(), ttl=60), lambda: now[0]
    return Warmer(conductor, keeper, clock=clock, epoch=clock)  # type: ignore[arg-type]


async def refreshed(warmer: Warmer) -> None:
    warmer.refresh()
    await until(lambda: not warmer._thinking)


async def test_the_known_part_is_computed_where_it_differs(conductor: Conductor) -> None:
    warmer, ids = made(conductor, [0.0]), list(range(8))
    head = [*ids, *range(500, 516)]  # the call is written anew
    warmer.ended(ended(ids, speculate=True), rendered(head))
    await until(lambda: conductor.jobs)
    (job,) = conductor.jobs
    assert job.prompt == head[:-1]
    assert job.sampling.max_tokens == 1


@pytest.mark.parametrize(
    ("head", "told"),
    [
        pytest.param([*range(8), *OUTPUT], {"speculate": True}, id="resident-already"),
        pytest.param([*range(8), *range(500, 516)], {}, id="not-asked"),
        pytest.param([*range(8), *range(500, 516)], {"speculate": True, "final": True}, id="over"),
        pytest.param(
            [*range(8), *range(500, 516)], {"speculate": True, "session": ""}, id="nobody"
        ),
    ],
)
async def test_nothing_is_computed_without_need(
    head: list[int], told: Any, conductor: Conductor
) -> None:
    warmer = made(conductor, [0.0])
    warmer.ended(ended(list(range(8)), **told), rendered(head))
    await until(lambda: not warmer._thinking)
    assert conductor.jobs == []


async def test_the_real_turn_ends_what_warms(conductor: Conductor) -> None:
    warmer, ids = made(conductor, [0.0]), list(range(8))
    warmer.ended(ended(ids, speculate=True), rendered([*ids, *range(500, 516)]))
    await until(lambda: conductor.jobs)
    warmer.begun("o", "other")
    assert conductor.cancelled == []
    warmer.begun("o", "s")
    assert conductor.cancelled == [conductor.jobs[0].turn]
    assert warmer._flights == {}
    warmer.ended(ended(ids, speculate=True), rendered([*ids, *range(500, 516)]))
    warmer.begun("o", "s")  # before it was even foreseen
    await asyncio.sleep(0.01)
    assert len(conductor.jobs) == 1


async def test_a_pin_is_touched_while_its_session_is_silent(conductor: Conductor) -> None:
    now = [0.0]
    warmer = made(conductor, now)
    warmer.ended(ended([1, 2, 3], retain_s=100), rendered([]))
    assert warmer.pinned("o", "s")
    assert not warmer.pinned("another", "s")
    for at, touched in ((REFRESH - 1, 0), (REFRESH, 1), (REFRESH + 1, 1)):
        now[0] = at
        await refreshed(warmer)
        assert len(conductor.jobs) == touched
    assert conductor.jobs[0].prompt == [1, 2, 3]
    conductor.watches[conductor.jobs[0].turn].landed(1)
    now[0] = 2 * REFRESH
    await refreshed(warmer)
    assert len(conductor.jobs) == 2
    now[0] = 100.0
    warmer.refresh()
    assert not warmer.pinned("o", "s")
    assert warmer.pins == {}


async def test_a_session_that_ends_lets_go(conductor: Conductor) -> None:
    warmer = made(conductor, [0.0])
    warmer.ended(ended([1], retain_s=100), rendered([]))
    warmer.ended(ended([1], final=True), rendered([]))
    assert warmer.pins == {}


async def test_a_session_that_ends_elsewhere_lets_go_at_the_next_touch(
    conductor: Conductor,
) -> None:
    now, store = [5.0], MemoryStore()
    here, there = made(conductor, now, store), made(Conductor(), now, store)
    for session, owner in (("s", "o"), ("other", "o"), ("s", "another")):
        here.ended(ended([1], session=session, owner=owner, retain_s=900), rendered([]))
    now[0] = 6.0
    there.ended(ended([1], final=True), rendered([]))
    await there._keeper.settled()
    now[0] += REFRESH
    await refreshed(here)
    assert list(here.pins) == [("o", "other"), ("another", "s")]
    assert len(conductor.jobs) == 2
    here.ended(ended([1], retain_s=900), rendered([]))  # it goes on after all
    now[0] += REFRESH
    await refreshed(here)
    assert here.pinned("o", "s")


async def test_a_turn_that_comes_while_the_store_is_asked_ends_the_touch(
    conductor: Conductor,
) -> None:
    now = [0.0]
    warmer = made(conductor, now)
    warmer.ended(ended([1], retain_s=100), rendered([]))
    now[0] = REFRESH
    warmer.refresh()
    (touch,) = warmer._thinking.values()
    warmer.begun("o", "s")
    await asyncio.wait([touch], timeout=5)
    assert touch.cancelled()
    assert conductor.jobs == []
    assert warmer.pinned("o", "s")


async def test_a_store_that_is_away_lets_nothing_go(
    conductor: Conductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> Any:
        raise UnavailableError("away")

    now, store = [0.0], MemoryStore()
    monkeypatch.setattr(store, "get", away)
    warmer = made(conductor, now, store)
    warmer.ended(ended([1], retain_s=100), rendered([]))
    now[0] = REFRESH
    await refreshed(warmer)
    assert len(conductor.jobs) == 1


async def test_pins_are_bounded_for_each_tenant(
    conductor: Conductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "PINNED_TOKENS", 10)
    warmer = made(conductor, [0.0])
    warmer.ended(ended([1] * 8, owner="b", session="own", retain_s=9), rendered([]))
    for session in ("one", "two", "three"):
        warmer.ended(ended([1] * 4, session=session, retain_s=9), rendered([]))
    warmer.ended(ended([1] * 11, session="huge", retain_s=9), rendered([]))
    assert list(warmer.pins) == [("b", "own"), ("o", "two"), ("o", "three")]


def test_shared_counts_the_common_beginning() -> None:
    assert shared([1, 2, 3], [1, 2, 3, 4]) == 3
    assert shared([1, 2, 3], [1, 5, 3]) == 1
    assert shared([], [1]) == 0


def test_the_next_turn_has_what_was_said_and_a_result_for_each_call() -> None:
    turn = next_turn(Turn("t", "messages", "m", (), session="s"), REPLY, "x")
    said, results = turn.messages
    assert [type(block) for block in said.blocks] == [Text, ToolCall]
    call, result = said.blocks[1], results.blocks[0]
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert result.call_id == call.id


@pytest.mark.parametrize(
    ("count", "length", "names"),
    [
        pytest.param(20, 20, ["a", "b"], id="behind-both"),
        pytest.param(12, 10, ["a"], id="in-the-second"),
        pytest.param(10, 10, ["a"], id="between"),
        pytest.param(3, 2, [], id="in-the-first"),
    ],
)
def test_a_warm_beginning_cuts_no_picture(count: int, length: int, names: list[str]) -> None:
    pictures = tuple(
        Picture(name, "image/png", b"", 1, 1, at, 5, 9) for name, at in (("a", 2), ("b", 10))
    )
    made = warming.beginning(replace(prompt(list(range(30))), pictures=pictures), count)
    assert made.ids == list(range(length))
    assert [one.digest for one in made.pictures] == names
