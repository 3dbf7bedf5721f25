"""Turns whose replica or parser is lost go on elsewhere: the client's bytes are as if nothing were."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from actors import vigil
from tests.protocols import apis
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import MODEL, Replica, Server, serving, settings
from tests.serving.waits import until

EACH = pytest.mark.parametrize("api", PATHS)
REPLY = [
    {"think": "I weigh the 🌧 and the café, for a while."},
    {"text": "Two places, then."},
    {"call": {"tool": "forecast", "arguments": {"place": "Bergen", "days": 3}}},
    {"call": {"tool": "forecast", "arguments": {"place": "Tromsø", "days": 1}}},
]
PACE = {"tokens": {"step_ms": 2}, "cached_tokens": 0}
NAMES = re.compile(
    rb"[0-9a-f]{32}|(?<=_)[0-9a-zA-Z]{16,}"
    rb'|(?<=created":)\d+|(?<=_at":)\d+|(?<=signature":")[^"]+|(?<=encrypted_content":")[^"]+'
)


@pytest.fixture
async def pair() -> AsyncIterator[Server]:
    """A server of two replicas, on which one turn is always answered alike."""
    model = {"engine": {"replicas": 2, "options": {"inline": True, "hang_s": 0.2}}}
    failover = {"quiet_s": 0.2, "patience_s": 3}
    async with serving(settings(model=model, failover=failover)) as server:
        server.says(*REPLY, **PACE)
        yield server


def tools(api: str) -> dict[str, Any]:
    return {"tools": TOOLS[api], "stream": True}


async def streamed(
    server: Server, api: str, act: Callable[[Replica], Any] | None = None, at: int = 0, **body: Any
) -> bytes:
    """A stream; `act` is done to the replica that runs it once `at` pieces have come."""
    raw, came = b"", 0
    asked = ask(api, **(tools(api) | body))
    async with server.http.stream("POST", PATHS[api], json=asked) as answer:
        assert answer.status_code == 200
        async for piece in answer.aiter_raw():
            raw += piece
            came += 1
            if act is not None and came >= at:
                act(running(server))
                act = None
    assert act is None, f"over after {came} pieces"
    return raw


def running(server: Server) -> Replica:
    """The replica that runs the only turn."""
    (found,) = (r for r in server.replicas[MODEL].values() if r.inner.open_turns)
    return found


def told(raw: bytes) -> bytes:
    """The stream without what differs between two turns: their names and times."""
    return NAMES.sub(b"", raw)


async def assert_nothing_left(server: Server) -> None:
    assert len(server.conductor) == 0
    for replica in server.replicas[MODEL].values():
        await until(lambda replica=replica: not replica.inner.open_turns)
        await until(lambda replica=replica: not replica.lanes.parsing)
    await until(lambda: not server.reserved(MODEL))


@EACH
@pytest.mark.parametrize("at", [1, 2, 9, 23, 40])
async def test_stream_is_the_same_when_its_replica_dies(pair: Server, api: str, at: int) -> None:
    whole = await streamed(pair, api)
    moved = await streamed(pair, api, pair.kill, at)
    assert apis.problems(api, moved) == []
    assert told(moved) == told(whole)
    assert pair.metrics.registry.get_sample_value("treadle_turns_moved_total") == 1
    await assert_nothing_left(pair)


@EACH
async def test_stream_is_the_same_when_its_parser_dies(pair: Server, api: str) -> None:
    whole = await streamed(pair, api)
    assert told(await streamed(pair, api, pair.lose_lane, 30)) == told(whole)


@EACH
async def test_whole_answer_is_the_same_when_its_replica_dies(pair: Server, api: str) -> None:
    body = ask(api, tools=TOOLS[api])
    whole = await pair.http.post(PATHS[api], json=body)
    moved = asyncio.ensure_future(pair.http.post(PATHS[api], json=body))
    await until(lambda: any(len(ids) > 20 for ids in list(said(pair))[1:]))
    pair.kill(running(pair))
    assert told((await moved).content) == told(whole.content)


def said(server: Server) -> list[list[int]]:
    """What each leg so far was given, in no order."""
    return [ids for r in server.replicas[MODEL].values() for ids in r.engine.output.values()]


@pytest.mark.parametrize("at", range(1, 8))
async def test_stop_string_that_began_before_the_move_stops_behind_it(
    pair: Server, at: int
) -> None:
    """The replica dies behind its frame number `at`, most of which show nothing yet."""
    pieces = ["Here it says ", "E", "N", "D ", "OF", " I", "T and goes", " on."]
    pair.says({"deltas": pieces}, **PACE)
    body: dict[str, Any] = {"stop_sequences": ["END OF IT"], "tools": []}
    whole = await streamed(pair, "messages", **body)
    assert b'"stop_sequence":"END OF IT"' in whole
    (first, second), frames = pair.replicas[MODEL].values(), 0

    def heard(_: str) -> None:
        nonlocal frames
        frames += 1
        if frames == at:
            asyncio.get_running_loop().call_soon(pair.kill, running(pair))

    first.engine.heard = second.engine.heard = heard
    moved = await streamed(pair, "messages", **body)
    assert frames >= at
    assert told(moved) == told(whole)


@EACH
async def test_limit_holds_for_all_that_was_said(pair: Server, api: str) -> None:
    limit = {"messages": "max_tokens", "responses": "max_output_tokens"}
    body = {limit.get(api, "max_completion_tokens"): 40}
    whole = await streamed(pair, api, **body)
    assert told(await streamed(pair, api, pair.kill, 20, **body)) == told(whole)


@EACH
async def test_stream_leaves_a_replica_that_is_frozen(
    pair: Server, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vigil, "ANSWER_WITHIN", 0.1)
    monkeypatch.setattr(vigil, "LOOK_EVERY", 0.05)
    whole = await streamed(pair, api)
    assert told(await streamed(pair, api, Replica.freeze, 25)) == told(whole)


async def test_stream_leaves_an_engine_that_makes_no_step(pair: Server) -> None:
    """Both stall at the same token: it is moved once, and fails when no other takes it."""
    pair.says({"text": "one two three four"}, hang_after={"tokens": 6, "scope": "engine"})
    raw = await asyncio.wait_for(streamed(pair, "messages"), 30)
    assert b"event: error" in raw
    assert raw.count(b'"text":"one') == 1
    assert pair.metrics.registry.get_sample_value("treadle_turns_moved_total") >= 1


@EACH
async def test_turn_that_kills_every_engine_fails_in_the_end(api: str) -> None:
    model = {"engine": {"replicas": 5, "options": {"inline": True}}}
    async with serving(settings(model=model, failover={"moves": 2})) as server:
        server.says({"text": "one two three four"}, crash_after={"tokens": 6, "how": "raise"})
        raw = await streamed(server, api)
        assert apis.problems(api, raw) == []
        assert b"moved in vain" in raw
        dead = [r for r in server.replicas[MODEL].values() if r.engine.jobs]
        assert len(dead) == 3
        assert len(server.conductor) == 0


async def test_turn_that_its_engine_fails_is_not_moved(pair: Server) -> None:
    pair.says({"text": "one two three four"}, fail_after={"tokens": 6, "message": "no good"})
    raw = await streamed(pair, "messages")
    assert b"no good" in raw
    assert sum(len(r.engine.jobs) for r in pair.replicas[MODEL].values()) == 1


@EACH
async def test_parked_turn_goes_on_where_it_was(pair: Server, api: str) -> None:
    whole = await streamed(pair, api)

    def park(replica: Replica) -> None:
        assert pair.conductor.park(replica.engine.jobs[-1].turn)

    assert told(await streamed(pair, api, park, 30)) == told(whole)
    await assert_nothing_left(pair)


@EACH
async def test_stream_moves_again_and_again(api: str) -> None:
    """Ten parks in one stream, at every few tokens."""
    model = {"engine": {"replicas": 2, "options": {"inline": True}}}
    async with serving(settings(model=model)) as server:
        server.says(*REPLY, tokens={"step_ms": 10}, cached_tokens=0)
        whole = await streamed(server, api)
        parks = 0

        async def disturb() -> None:
            nonlocal parks
            while parks < 10:
                await asyncio.sleep(0.005)
                parks += sum(server.conductor.park(f.turn) for f in server.conductor.flights())

        disturbing = asyncio.ensure_future(disturb())
        raw = await streamed(server, api)
        disturbing.cancel()
        assert parks >= 5
        assert told(raw) == told(whole)


async def test_turn_of_a_replica_that_drains_is_not_cut(pair: Server) -> None:
    whole = await streamed(pair, "messages")

    def drain(replica: Replica) -> None:
        pair.leave(replica)
        task = asyncio.ensure_future(replica.inner.stop())  # its time is over
        pair.tasks.append(task)

    assert told(await streamed(pair, "messages", drain, 30)) == told(whole)


async def test_engine_is_told_the_constraint_and_the_seed_of_every_leg(pair: Server) -> None:
    body = {
        "seed": 7,
        "tools": [],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"type": "object"}},
        },
    }
    pair.says({"json": {"a": ["b", "c", "d"], "e": "f"}}, **PACE)
    alive = list(pair.replicas[MODEL].values())
    await streamed(pair, "chat", pair.kill, 6, **body)
    first, second = sorted((j for r in alive for j in r.engine.jobs), key=lambda job: job.resumed)
    assert second.resumed > 0
    assert second.constraint == first.constraint is not None
    assert replace(second.sampling, max_tokens=None) == replace(first.sampling, max_tokens=None)
