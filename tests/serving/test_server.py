"""The server in one process serves as the cluster does."""

from __future__ import annotations

import json

import pytest

from tests.serving.asks import PATHS, ask
from tests.serving.server import MODEL, Server

ASK = {"model": MODEL, "messages": [{"role": "user", "content": "Weather in Bergen?"}]}


async def test_a_turn_goes_through_every_part(server: Server) -> None:
    server.says({"text": "Rain."})
    answer = await server.http.post("/v1/chat/completions", json=ASK)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == "Rain."
    (job,) = server.engine.jobs
    assert answer.json()["usage"]["prompt_tokens"] == len(job.prompt)


async def test_nothing_of_a_turn_stays(server: Server) -> None:
    server.says({"text": "Rain."})
    async with server.http.stream("POST", "/v1/chat/completions", json=ASK | {"stream": True}) as s:
        lines = [line async for line in s.aiter_lines() if line.startswith("data: {")]
    assert json.loads(lines[-1][6:])["choices"][0]["finish_reason"] == "stop"
    assert len(server.conductor) == 0
    assert server.replica.lanes.parsing == 0


async def test_every_path_of_the_document_is_served(server: Server) -> None:
    paths = (await server.http.get("/openapi.json")).json()["paths"]
    for path, operations in paths.items():
        for method in set(operations) - {"parameters"}:
            url = path.replace("{model}", MODEL).replace("{", "").replace("}", "")
            answer = await server.http.request(method.upper(), url)
            assert answer.status_code != 405, path
            assert f"{url}: Not Found" not in answer.text


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_turn_that_fails_before_its_first_token_has_a_status_of_its_own(
    server: Server, api: str, stream: bool
) -> None:
    server.says({"text": "Rain."}, fail_after=0)
    answer = await server.http.post(PATHS[api], json=ask(api, stream=stream))
    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "the scenario asked for a failure"
