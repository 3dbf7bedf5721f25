"""Background responses: they run on, are found by every ingress, and end in one of few ways."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from actors.background import Background
from actors.intake import Intake
from actors.response_store import ResponseStore
from sessions.memory_store import MemoryStore
from tests.protocols import apis
from tests.serving.asks import PATHS, ask
from tests.serving.server import MODEL, Server, serving
from tests.serving.waits import until

PATH = PATHS["responses"]
SLOW = {"tokens": {"step_ms": 10}}


async def begin(server: Server, **fields: Any) -> dict[str, Any]:
    body = ask("responses", background=True, **fields)
    answer = await server.http.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def status(server: Server, name: str) -> str:
    return str((await server.http.get(f"{PATH}/{name}")).json()["status"])


async def wait_for(server: Server, name: str, *wanted: str) -> dict[str, Any]:
    async with asyncio.timeout(10):
        while (body := (await server.http.get(f"{PATH}/{name}")).json())["status"] not in wanted:  # noqa: ASYNC110 - a client polls
            await asyncio.sleep(0.005)
    return body


async def test_it_is_queued_then_runs_then_is_done(server: Server) -> None:
    server.says({"text": "Rain all day long."}, tokens={"step_ms": 30})
    queued = await begin(server, metadata={"a": "b"})
    assert (queued["status"], queued["output"], queued["usage"]) == ("queued", [], None)
    await wait_for(server, queued["id"], "in_progress")
    done = await wait_for(server, queued["id"], "completed")
    assert done["output"][0]["content"][0]["text"] == "Rain all day long."
    assert (done["id"], done["background"], done["metadata"]) == (queued["id"], True, {"a": "b"})
    assert len(server.conductor) == 0
    more = ask("responses", input="more", previous_response_id=queued["id"])
    assert (await server.http.post(PATH, json=more)).status_code == 200


async def test_it_cannot_be_gone_on_from_while_it_runs(server: Server) -> None:
    server.says({"endless": "word "}, **SLOW)
    queued = await begin(server)
    more = ask("responses", input="more", previous_response_id=queued["id"])
    refused = await server.http.post(PATH, json=more)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "previous_response_id"


async def test_it_is_cancelled(server: Server) -> None:
    server.says({"endless": "word "}, **SLOW)
    queued = await begin(server)
    await wait_for(server, queued["id"], "in_progress")
    cancelled = (await server.http.post(f"{PATH}/{queued['id']}/cancel")).json()
    assert cancelled["status"] == "cancelled"
    assert await status(server, queued["id"]) == "cancelled"
    await until(lambda: server.engine.aborts)
    assert server.engine.stats().running == 0
    again = (await server.http.post(f"{PATH}/{queued['id']}/cancel")).json()
    assert again == cancelled


async def test_only_one_in_the_background_can_be_cancelled(server: Server) -> None:
    done = (await server.http.post(PATH, json=ask("responses"))).json()
    refused = await server.http.post(f"{PATH}/{done['id']}/cancel")
    assert refused.status_code == 400
    absent = await server.http.post(f"{PATH}/resp_absent/cancel")
    assert absent.status_code == 404


async def test_deleting_it_ends_it(server: Server) -> None:
    server.says({"endless": "word "}, **SLOW)
    queued = await begin(server)
    assert (await server.http.delete(f"{PATH}/{queued['id']}")).status_code == 200
    await until(lambda: server.engine.aborts)
    await server.outside.background.settled()
    assert (await server.http.get(f"{PATH}/{queued['id']}")).status_code == 404


async def test_it_must_be_stored(server: Server) -> None:
    refused = await server.http.post(PATH, json=ask("responses", background=True, store=False))
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "background"


async def test_a_refused_one_leaves_nothing(server: Server) -> None:
    server.says({"text": "x"})
    server.kill(server.replica)
    refused = await server.http.post(PATH, json=ask("responses", background=True))
    assert refused.status_code == 503
    assert "retry-after" in refused.headers
    assert not server.outside.background._running


async def test_one_that_dies_is_failed(server: Server) -> None:
    server.says({"text": "one two three"}, fail_after=2)
    queued = await begin(server)
    failed = await wait_for(server, queued["id"], "failed")
    assert failed["error"]["code"] == "server_error"


async def test_it_streams_and_runs_on_without_its_client(server: Server) -> None:
    server.says({"text": "one two three four five six"}, tokens={"step_ms": 40})
    body = ask("responses", background=True, stream=True)
    async with server.http.stream("POST", PATH, json=body) as answer:
        seen = b""
        async for piece in answer.aiter_raw():
            seen += piece
            if b"two" in seen:
                break
    begun = apis.parse(seen[: seen.rindex(b"\n\n") + 2])
    name = begun[0][1]["response"]["id"]
    last = begun[-1][1]["sequence_number"]
    rest = await server.http.get(f"{PATH}/{name}?stream=true&starting_after={last}")
    events = [data for _, data in [*begun, *apis.parse(rest.content)]]
    numbers = [event["sequence_number"] for event in events]
    assert numbers == list(range(len(events)))
    assert events[-1]["type"] == "response.completed"
    deltas = [event["delta"] for event in events if event["type"].endswith("text.delta")]
    assert "".join(deltas) == "one two three four five six"
    assert (await wait_for(server, name, "completed")) == events[-1]["response"]
    again = await server.http.get(f"{PATH}/{name}?stream=true")
    assert apis.problems("responses", again.content) == []


async def test_a_stream_that_is_not_kept_is_refused(server: Server) -> None:
    done = (await server.http.post(PATH, json=ask("responses"))).json()
    refused = await server.http.get(f"{PATH}/{done['id']}?stream=true")
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "stream"
    odd = await server.http.get(f"{PATH}/{done['id']}?stream=true&starting_after=x")
    assert odd.status_code == 400


async def test_another_ingress_finds_it_and_can_cancel_it() -> None:
    """Two ingresses over one store: what one runs, the other shows and ends."""
    store = MemoryStore()
    async with serving(store=store) as runs, serving(store=store) as asks:
        runs.outside.background._beat = 0.02
        runs.says({"endless": "word "}, **SLOW)
        queued = await begin(runs)
        await wait_for(asks, queued["id"], "in_progress")
        cancelled = await asks.http.post(f"{PATH}/{queued['id']}/cancel")
        assert cancelled.json()["status"] == "cancelled"
        await until(lambda: runs.engine.aborts)
        await runs.outside.background.settled()
        assert await status(asks, queued["id"]) == "cancelled"


async def test_one_whose_ingress_died_has_failed() -> None:
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    async with serving(store=store) as dies, serving(store=store) as asks:
        dies.says({"endless": "word "}, **SLOW)
        queued = await begin(dies)
        assert await status(asks, queued["id"]) in ("queued", "in_progress")
        if dies.outside.background._beating is not None:
            dies.outside.background._beating.cancel()  # as if its process were gone
        now[0] = 3600
        lost = (await asks.http.get(f"{PATH}/{queued['id']}")).json()
        assert (lost["status"], lost["error"]["code"]) == ("failed", "server_error")


@pytest.mark.parametrize("ended", ["completed", "cancelled"])
async def test_stopping_waits_for_what_runs(server: Server, ended: str) -> None:
    server.says({"text": "a b c"} if ended == "completed" else {"endless": "word "}, **SLOW)
    queued = await begin(server)
    background: Background = server.outside.background
    await (background.settled() if ended == "completed" else background.stop())
    assert await status(server, queued["id"]) == ended
    assert isinstance(server.outside.background._intake, Intake)
    assert isinstance(background._store, ResponseStore)
    assert queued["model"] == MODEL
