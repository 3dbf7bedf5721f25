"""The choice of a replica: whatever the router answers too late is given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from actors import model_service, router_asking
from actors.fleet import Fleet
from actors.messages import ReplicaCard
from actors.model_service import ChoiceTaken, ModelService
from actors.serving import ModelFolder, ModelSpec
from prompts.prompter import Prompt
from router.decision import Choice, Decision, Queued, Refusal
from turns.errors import OverloadedError, UnavailableError
from turns.turn import Turn

CHOICE = Choice("b", 0, "load", "t/1")
TURN = Turn("t", "chat", "m", ())
PROMPT = Prompt(ids=[1, 2, 3], tail="", stop_ids=(), thinking_budget=None)


class Router:
    """A router whose answers come when the test gives them."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.choice: asyncio.Future[Decision] = loop.create_future()
        self.admission: asyncio.Future[Decision] = loop.create_future()
        self.excluded: tuple[str, ...] = ()
        self.released: list[str] = []
        self.forgone: list[str] = []
        self.let_go: list[str] = []
        self.own: list[str] = []

    def choose(self, model: str, ask: Any) -> asyncio.Future[Decision]:
        self.excluded = ask.exclude
        return self.choice

    def admitted(self, model: str, turn: str) -> asyncio.Future[Decision]:
        return self.admission

    def release(self, model: str, choice: Choice) -> None:
        self.released.append(choice.reservation)

    def placed(self, model: str, ask: Any, choice: Choice) -> None:
        self.own.append(choice.reservation)

    def gone(self, model: str, turn: str) -> None:
        self.forgone.append(turn)

    def left(self, model: str, replicas: Sequence[str]) -> None:
        self.let_go += replicas


def there(names: str) -> dict[str, ReplicaCard]:
    return {name: ReplicaCard(name, "m", 16, 1000, 8, []) for name in names}


def service(router: Router, *, deaf: str = "") -> ModelService:
    fleet = Fleet()
    fleet.replace(there("abc"))
    folder = ModelFolder(ModelSpec("m", "scripted:", "qwen3", ""))
    return ModelService(
        folder,
        fleet,
        router,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        lambda card: card.replica not in deaf,
    )


async def queued(router: Router, model: ModelService) -> asyncio.Future[ChoiceTaken]:
    """A turn that waits for a place."""
    router.choice.set_result(Queued("t", 0))
    waiting = asyncio.ensure_future(model.choose(TURN, PROMPT))
    for _ in range(3):
        await asyncio.sleep(0)
    return waiting


async def test_choice_of_the_router_is_taken_and_the_others_stand_by() -> None:
    router = Router()
    router.choice.set_result(CHOICE)
    taken = await service(router).choose(TURN, PROMPT)
    assert (taken.replica, taken.choice, taken.others) == ("b", CHOICE, ("a", "c"))


async def test_late_choice_is_given_back() -> None:
    router = Router()
    taken = await service(router).choose(TURN, PROMPT)
    assert taken.why == "hashed"
    assert router.own == [taken.choice.reservation]
    router.choice.set_result(CHOICE)
    await asyncio.sleep(0)
    assert router.released == ["t/1"]


async def test_late_place_in_the_queue_is_given_back() -> None:
    router = Router()
    await service(router).choose(TURN, PROMPT)
    router.choice.set_result(Queued("t", 0))
    await asyncio.sleep(0)
    assert router.forgone == ["t"]


@pytest.mark.parametrize("queued", [False, True], ids=["choosing", "queued"])
async def test_client_that_leaves_takes_nothing_along(
    queued: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router_asking, "ROUTER_WAIT", 30.0)
    router = Router()
    if queued:
        router.choice.set_result(Queued("t", 0))
    waiting = asyncio.ensure_future(service(router).choose(TURN, PROMPT))
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    (router.admission if queued else router.choice).set_result(CHOICE)
    await asyncio.sleep(0)
    assert router.released == ["t/1"]
    assert router.forgone == (["t"] if queued else [])


async def test_router_that_dies_with_a_queue_leaves_the_turn_to_hashing() -> None:
    router = Router()
    router.choice.set_result(Queued("t", 0))
    router.admission.set_exception(RuntimeError("dead"))
    taken = await service(router).choose(TURN, PROMPT)
    assert taken.why == "hashed"


async def test_router_that_answers_while_the_loop_is_late_is_heard() -> None:
    router = Router()
    waiting = asyncio.ensure_future(service(router).choose(TURN, PROMPT))
    await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251 - what other turns do to this loop
    asyncio.get_running_loop().call_later(0.001, router.choice.set_result, CHOICE)
    assert (await waiting).choice == CHOICE


async def test_router_that_is_lost_is_not_waited_for_long_until_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float | None] = []

    async def no_wait(_: asyncio.Future[Any], within: float | None) -> None:
        waits.append(within)
        await asyncio.sleep(0)

    monkeypatch.setattr(router_asking, "wait_here", no_wait)
    router = Router()
    model = service(router)
    for _ in range(6):
        await model.choose(TURN, PROMPT)
    assert waits == [router_asking.ROUTER_WAIT] * 4 + [router_asking.LOST_WAIT] * 2
    router.choice.set_result(CHOICE)
    await asyncio.sleep(0)  # late, but it answers
    await model.choose(TURN, PROMPT)
    assert waits[-1] == router_asking.ROUTER_WAIT


async def test_turn_that_the_ingress_placed_is_released_as_any_other() -> None:
    router = Router()
    model = service(router)
    taken = await model.choose(TURN, PROMPT)
    model.release(taken)
    assert router.released == router.own == [taken.choice.reservation]


async def test_ingress_by_itself_fills_no_replica_beyond_its_places() -> None:
    router = Router()
    model = service(router)
    taken = [await model.choose(TURN, PROMPT) for _ in range(24)]
    assert sorted(one.replica for one in taken) == ["a"] * 8 + ["b"] * 8 + ["c"] * 8
    with pytest.raises(OverloadedError):
        await model.choose(TURN, PROMPT)
    model.release(taken[0])
    assert (await model.choose(TURN, PROMPT)).replica == taken[0].replica


async def test_saturated_fleet_refuses_with_the_time_to_come_back() -> None:
    router = Router()
    router.choice.set_result(Refusal("saturated", 7))
    with pytest.raises(OverloadedError) as caught:
        await service(router).choose(TURN, PROMPT)
    assert caught.value.retry_after == 7


async def test_replica_whose_parser_is_not_heard_is_chosen_by_nobody() -> None:
    router = Router()
    taken = await service(router, deaf="ab").choose(TURN, PROMPT)
    assert (taken.replica, taken.others, router.excluded) == ("c", (), ("a", "b"))
    router = Router()
    taken = await service(router, deaf="abc").choose(TURN, PROMPT)
    assert len(taken.others) == 2
    assert router.excluded == ()


async def test_replica_of_which_serve_has_not_told_yet_is_declined_and_not_let_go() -> None:
    router = Router()
    router.choice.set_result(Choice("new", 0, "load", "t/1"))
    model = service(router)
    assert (await model.choose(TURN, PROMPT)).why == "hashed"
    assert (router.excluded, router.let_go) == (("new",), [])
    assert set(router.released) == {"t/1"}
    model.fleet.replace(there("abc") | {"new": ReplicaCard("new", "m", 16, 1000, 8, [])})
    assert (await model.choose(TURN, PROMPT)).replica == "new"
    assert router.excluded == ()


async def test_replica_that_came_while_the_turn_waited_is_taken() -> None:
    router = Router()
    model = service(router)
    waiting = await queued(router, model)
    model.fleet.replace(there("abcd"))
    router.admission.set_result(Choice("d", 0, "load", "t/1"))
    taken = await waiting
    assert (taken.replica, taken.others) == ("d", ("a", "b", "c"))
    assert (router.released, router.let_go) == ([], [])


async def test_replica_that_serve_has_let_go_is_told_of() -> None:
    router = Router()
    router.choice.set_result(CHOICE)
    model = service(router)
    model.fleet.replace(there("ac"))
    taken = await model.choose(TURN, PROMPT)
    assert taken.why == "hashed"
    assert set(router.let_go) == {"b"}
    model.fleet.replace(there("abc"))
    assert (await model.choose(TURN, PROMPT)).replica == "b"


async def test_place_is_given_back_when_all_replicas_went_while_the_turn_waited() -> None:
    router = Router()
    model = service(router)
    waiting = await queued(router, model)
    model.fleet.replace({})
    router.admission.set_result(Choice("new", 0, "load", "t/1"))
    with pytest.raises(UnavailableError):
        await waiting
    assert router.released == ["t/1"]


async def test_replica_that_never_came_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_service, "EARLY_FOR", -1.0)
    router = Router()
    router.choice.set_result(Choice("crashed", 0, "load", "t/1"))
    model = service(router)
    for _ in range(2):
        router.excluded = ("anything",)
        await model.choose(TURN, PROMPT)
        assert router.excluded == ("crashed",)  # by this turn alone
    router.choice = asyncio.get_running_loop().create_future()
    router.choice.set_result(CHOICE)
    await model.choose(TURN, PROMPT)
    assert router.excluded == ()
