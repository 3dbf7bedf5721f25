"""A more urgent turn does not wait behind what runs: that is parked, and goes on whole."""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

import pytest

from tests.serving.asks import PATHS, ask
from tests.serving.server import MODEL, Server, serving, settings
from tests.serving.waits import until

LOW = {"reply": [{"lorem": 120}], "tokens": {"step_ms": 10}, "cached_tokens": 0}
PLACES = 4


def crowded(*, preempt: bool) -> Any:
    """Settings of one engine with few places and a queue before them."""
    model = {"engine": {"options": {"inline": True, "max_turns": PLACES, "max_waiting": 0}}}
    return settings(model=model, router={"queue_limit": 64, "preempt": preempt})


async def timed(server: Server, priority: int, number: int) -> tuple[float, str]:
    """A streamed turn: seconds to its first words, and all of them."""
    hints = {"agent_hints": {"priority": priority}}
    message = {"role": "user", "content": f"number {number}"}
    body = ask("chat", stream=True, messages=[message], nvext=hints)
    clock = asyncio.get_running_loop().time
    began, first, words = clock(), 0.0, ""
    async with server.http.stream("POST", PATHS["chat"], json=body) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if '"content":"' in line:
                first = first or clock() - began
                words += line.split('"content":"')[1].split('"')[0]
    return first, words


async def saturated(*, preempt: bool) -> tuple[list[float], list[float], set[str], int]:
    """Twice as many patient turns as there are places, and urgent ones that come after them."""
    async with serving(crowded(preempt=preempt)) as server:
        server.says(*LOW["reply"], tokens=LOW["tokens"], cached_tokens=0)
        low = [asyncio.ensure_future(timed(server, 0, n)) for n in range(2 * PLACES)]
        await until(lambda: server.queued(MODEL) == PLACES)
        await until(lambda: server.engine.output)
        high = [asyncio.ensure_future(timed(server, 9, 100 + n)) for n in range(PLACES)]
        urgent, patient = await asyncio.gather(*high), await asyncio.gather(*low)
        assert len(server.conductor) == 0
        await until(lambda: not server.reserved(MODEL))
        moved = server.metrics.registry.get_sample_value("treadle_turns_moved_total") or 0
        words = {said for _, said in (*urgent, *patient)}
        return [t for t, _ in urgent], [t for t, _ in patient], words, int(moved)


@pytest.mark.parametrize("preempt", [True, False], ids=["on", "off"])
async def test_urgent_turns_do_not_wait_for_patient_ones(*, preempt: bool) -> None:
    urgent, patient, words, moved = await saturated(preempt=preempt)
    assert len(words) == 1, "every turn says all its words, once"
    if preempt:
        assert moved >= PLACES
        assert statistics.median(urgent) < statistics.median(patient)
    else:
        assert moved == 0


async def test_a_turn_that_may_not_be_parked_is_passed_over() -> None:
    """Two places: the newer turn is bound by a grammar, so the older one makes room."""
    model = {"engine": {"options": {"inline": True, "max_turns": 2, "max_waiting": 0}}}
    async with serving(settings(model=model, router={"queue_limit": 9, "preempt": True})) as server:
        server.says({"lorem": 400}, tokens={"step_ms": 10})
        low = [asyncio.ensure_future(timed(server, 0, 1))]
        await until(lambda: server.reserved(MODEL) == 1)
        shape = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
        body = ask("chat", stream=True, response_format=shape)
        low.append(asyncio.ensure_future(server.http.post(PATHS["chat"], json=body)))
        await until(lambda: sum(bool(flight.ids) for flight in server.conductor.flights()) == 2)
        older, bound = server.conductor.flights()
        high = asyncio.ensure_future(timed(server, 9, 2))
        await until(lambda: older.left == "parked")
        assert bound.leg == bound.turn
        for one in (*low, high):
            one.cancel()
        await asyncio.gather(*low, high, return_exceptions=True)
