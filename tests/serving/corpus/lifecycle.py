"""The corpus's lifecycle cases, played on every API: what becomes of a turn that does not go well."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import httpx
import psutil

from tests.protocols import apis
from tests.serving.asks import PATHS, ask
from tests.serving.corpus.cases import Case, server_of
from tests.serving.corpus.players import PLAYERS, Played
from tests.serving.server import Server
from tests.serving.waits import until

WORDS = {"model": "m"}
SLOW = {"reply": [{"endless": "word "}], "tokens": {"step_ms": 20}}


def _asked(api: str, **fields: Any) -> dict[str, Any]:
    return ask(api, **WORDS, **fields) | ({"max_tokens": 100_000} if api == "messages" else {})


async def killed(_: Server, case: Case) -> Played:
    """A replica dies under a stream that has brought some deltas."""
    deltas = case["request"]["kill_replica_after_deltas"]
    played = Played(case)
    for api in PATHS:
        async with server_of(case) as server:
            server.says(*SLOW["reply"], tokens=SLOW["tokens"])
            body = _asked(api, stream=True)
            async with server.http.stream("POST", PATHS[api], json=body) as answer:
                raw, at = b"", 0.0
                loop = asyncio.get_running_loop()
                async for piece in answer.aiter_raw():
                    raw += piece
                    if not at and raw.count(b"word") >= deltas:
                        server.kill(server.replica)
                        at = loop.time()
            played.facts.append(
                {"error_after_ms": (loop.time() - at) * 1000, "raw": raw, "api": api}
            )
    return played


async def left_early(_: Server, case: Case) -> Played:
    """The client closes while the engine has said nothing yet."""
    played = Played(case)
    for api in PATHS:
        for stream in (True, False):
            async with server_of(case) as server:
                body = _asked(api, stream=stream)
                asking = asyncio.ensure_future(server.http.post(PATHS[api], json=body))
                await asyncio.wait([asking], timeout=case["request"]["close_after_ms"] / 1000)
                await until(lambda server=server: server.engine.jobs)
                asking.cancel()
                closed = asyncio.get_running_loop().time()
                (job,) = server.engine.jobs
                await until(lambda server=server, job=job: job.turn in server.engine.aborts)
                aborted = server.engine.aborts[job.turn]
                played.facts.append({"aborted_after_ms": (aborted - closed) * 1000})
    return played


async def crowded(_: Server, case: Case) -> Played:
    """One request more than the engine runs and queues."""
    assert case["request"]["concurrency"] == "limit + queue + 1"
    played = Played(case)
    for api in PATHS:
        async with server_of(case, max_turns=1, queue_limit=1) as server:
            server.says(*SLOW["reply"], tokens=SLOW["tokens"])
            waiting = [
                asyncio.ensure_future(server.http.post(PATHS[api], json=_asked(api)))
                for _ in range(2)
            ]
            await until(lambda server=server: server.engine.jobs and server.queued("m"))
            for stream in (True, False):
                answer = await server.http.post(PATHS[api], json=_asked(api, stream=stream))
                played.facts.append({"answer": answer, "api": api})
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
    return played


async def read_slowly(_: Server, case: Case) -> Played:
    """A client that hardly reads, beside one that does."""
    played = Played(case)
    async with server_of(case) as server:
        host, port = server.url.removeprefix("http://").split(":")
        body = httpx.Request("POST", server.url, json=_asked("chat", stream=True)).content
        reader, writer = await asyncio.open_connection(host, int(port), limit=2**16)
        head = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        server.engine.keeps_output = False
        writer.write(head.encode() + body)
        await reader.read(200)
        gc.collect()
        before = psutil.Process().memory_info().rss
        worst = before
        server.says({"text": "still served"})
        others = []
        async with asyncio.timeout(60):
            while server.replica.inner.open_turns:
                answer = await server.http.post(PATHS["chat"], json=_asked("chat"))
                others.append(answer.json()["choices"][0]["message"]["content"])
                await reader.read(10)  # some 200 bytes a second
                worst = max(worst, psutil.Process().memory_info().rss)
                await asyncio.sleep(0.05)
        writer.close()
        played.facts.append({"grown": worst - before, "others": others})
    return played


def last_error(fact: dict[str, Any]) -> dict[str, Any]:
    """The error at the end of a stream, in the API's own shape."""
    last = next(data for _, data in reversed(apis.parse(fact["raw"])) if isinstance(data, dict))
    if fact["api"] == "responses":
        assert last["type"] == "response.failed"
        return dict(last["response"]["error"])
    return dict(last["error"])


PLAYERS |= {
    "kill_replica_after_deltas": killed,
    "close_after_ms": left_early,
    "concurrency": crowded,
    "read_bytes_per_s": read_slowly,
}
