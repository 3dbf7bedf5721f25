"""The vigil's laws: who is silent is asked, and who does not answer has lost its turns."""

from __future__ import annotations

import asyncio

import pytest

from actors.conductor import Conductor, Perseverance
from actors.vigil import Vigil
from tests.actors.flying import Recorder, batch, begin, settle, wait_until
from turns.events import TextDelta
from turns.frames import Job, ParseSpec
from turns.turn import Sampling


@pytest.mark.parametrize("answer", [["t"], [], None], ids=["held", "not_held", "no_answer"])
async def test_replica_that_is_silent_is_asked(
    monkeypatch: pytest.MonkeyPatch, answer: list[str] | None
) -> None:
    monkeypatch.setattr("actors.vigil.ANSWER_WITHIN", 0.01)
    conductor = Conductor(Perseverance(quiet=0.0))
    flight, recorder, call = begin(conductor)
    await settle()
    call.holds = asyncio.get_running_loop().create_future()
    if answer is not None:
        call.holds.set_result(answer)
    flight.heard -= 1
    before = flight.heard
    Vigil(conductor).look()
    if answer:
        await wait_until(lambda: flight.heard > before)
        assert len(call.replicas) == 1
    else:
        await wait_until(lambda: len(call.replicas) == 2)
        assert recorder.asked == [([], "r1")]


async def test_all_turns_of_a_replica_that_does_not_answer_leave_it_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One was not quiet for long enough when the others were asked about; one was heard since."""
    monkeypatch.setattr("actors.vigil.ANSWER_WITHIN", 0.05)
    conductor = Conductor(Perseverance(quiet=10.0))
    flight, _, call = begin(conductor, "quiet")
    call.holds = asyncio.get_running_loop().create_future()
    found = {"quiet": flight}
    for turn in ("less", "heard"):
        job = Job(turn, [1], Sampling(), ParseSpec("qwen3", ""))
        recorder = Recorder()
        found[turn] = conductor.begin(job, call, ["r1"], recorder, recorder)
    await settle()
    found["quiet"].heard -= 20
    found["less"].heard -= 5
    Vigil(conductor).look()
    await settle()
    conductor.deliver(batch(TextDelta("a"), turn="heard"), "lane")
    await wait_until(lambda: len(call.replicas) == 5)
    assert {turn for turn, one in found.items() if one.replica == "r2"} == {"quiet", "less"}
