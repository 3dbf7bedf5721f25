"""`truncation: auto`: the oldest messages go where the whole would not fit; else it is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.serving.asks import ask
from tests.serving.server import Server, serving, settings

WORDS = "word " * 60
PATH = "/v1/responses"


def talk(exchanges: int) -> list[dict[str, Any]]:
    said = [{"role": "developer", "content": "Head."}]
    for number in range(exchanges):
        said += [
            {"role": "user", "content": f"Question {number}. {WORDS}"},
            {"role": "assistant", "content": f"Answer {number}."},
        ]
    return [*said, {"role": "user", "content": "The last question."}]


def prompt(server: Server) -> str:
    return server.ingress.models[0].folder.tokenizer.decode(server.engine.jobs[-1].prompt)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_oldest_messages_go_and_it_is_said(stream: bool) -> None:
    async with serving(settings(model={"context_window": 400})) as server:
        body = ask("responses", input=talk(12), truncation="auto", stream=stream)
        answer = await server.http.post(PATH, json=body)
        assert answer.status_code == 200, answer.text
        left = int(answer.headers["x-treadle-truncated"])
        assert 0 < left < 24
        assert left % 2 == 0
        seen = prompt(server)
        assert "Head." in seen
        assert "The last question." in seen
        assert "Question 0." not in seen
        assert f"Question {left // 2}." in seen
        metrics = (await server.http.get("/metrics")).text
        assert f'treadle_truncated_total{{api="responses"}} {left}.0' in metrics


async def test_what_fits_is_left_alone() -> None:
    async with serving() as server:
        for fields in ({"truncation": "auto"}, {}):
            answer = await server.http.post(PATH, json=ask("responses", input=talk(3), **fields))
            assert "x-treadle-truncated" not in answer.headers
        first, second = server.engine.jobs
        assert first.prompt == second.prompt


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"input": talk(12)}, id="not-asked"),
        pytest.param({"input": "word " * 900, "truncation": "auto"}, id="nothing-to-drop"),
    ],
)
async def test_what_cannot_fit_is_refused(fields: dict[str, Any]) -> None:
    async with serving(settings(model={"context_window": 400})) as server:
        answer = await server.http.post(PATH, json=ask("responses", **fields))
        assert answer.status_code == 400
        assert json.loads(answer.content)["error"]["code"] == "context_length_exceeded"
