"""Counting and tokenising: by the one renderer, so that no count ever differs from a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.serving.asks import PATHS, QUESTION, TOOLS, ask
from tests.serving.server import MODEL, Server, serving, settings

COUNTERS = {"messages": "/v1/messages/count_tokens", "responses": "/v1/responses/input_tokens"}
EACH = pytest.mark.parametrize("api", COUNTERS)


async def count(server: Server, api: str, body: dict[str, Any]) -> int:
    answer = await server.http.post(COUNTERS[api], json=body)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["input_tokens"])


async def test_what_is_counted_of_a_continued_response_is_all_of_it(server: Server) -> None:
    first = (await server.http.post(PATHS["responses"], json=ask("responses"))).json()
    more = {"model": MODEL, "input": "more", "previous_response_id": first["id"]}
    counted = await count(server, "responses", more)
    answer = (await server.http.post(PATHS["responses"], json=more)).json()
    assert answer["usage"]["input_tokens"] == counted == len(server.engine.jobs[-1].prompt)
    assert counted > len(server.engine.jobs[0].prompt)


@EACH
async def test_a_conversation_over_the_window_is_counted_and_not_run(api: str) -> None:
    async with serving(settings(options={"max_model_len": 64, "kv_blocks": 16})) as server:
        words = {"messages": [{"role": "user", "content": "word " * 100}], "input": "word " * 100}
        body = ask(api) | {name: words[name] for name in ask(api) if name in words}
        assert await count(server, api, body) > 64
        refused = await server.http.post(PATHS[api], json=body)
        assert refused.status_code == 400
        message = refused.json()["error"]["message"]
        assert ("prompt is too long" if api == "messages" else "maximum context length") in message
        assert not server.engine.jobs


@EACH
async def test_a_counter_refuses_what_its_api_refuses(server: Server, api: str) -> None:
    for body, status in ((ask(api, model="nope"), 404), ({"model": MODEL}, 400)):
        answer = await server.http.post(COUNTERS[api], json=body)
        assert answer.status_code == status
        assert ("request_id" in answer.json()) == (api == "messages")
    answer = await server.http.post(COUNTERS[api], content=b"{")
    assert answer.status_code == 400


@pytest.mark.parametrize("prefix", ["", "/v1"])
async def test_messages_are_tokenised_as_they_are_run(server: Server, prefix: str) -> None:
    body = ask("chat", tools=TOOLS["chat"])
    tokens = (await server.http.post(f"{prefix}/tokenize", json=body)).json()
    await server.http.post(PATHS["chat"], json=body)
    (job,) = server.engine.jobs
    assert tokens["tokens"] == job.prompt
    assert (tokens["count"], tokens["max_model_len"]) == (len(job.prompt), 131_072)
    assert tokens["token_strs"] is None
    text = (await server.http.post(f"{prefix}/detokenize", json={"tokens": job.prompt})).json()
    assert QUESTION in text["prompt"]
    assert text["prompt"].endswith("<|im_start|>assistant\n")


async def test_the_header_of_the_reply_can_be_left_out(server: Server) -> None:
    whole = (await server.http.post("/tokenize", json=ask("chat"))).json()["tokens"]
    body = ask("chat", add_generation_prompt=False)
    history = (await server.http.post("/tokenize", json=body)).json()["tokens"]
    assert whole[: len(history)] == history
    rest = (await server.http.post("/detokenize", json={"tokens": whole[len(history) :]})).json()
    assert rest["prompt"] == "<|im_start|>assistant\n"


async def test_a_text_is_tokenised_by_itself(server: Server) -> None:
    body = {"model": MODEL, "prompt": "Wörter, words; 字\n", "return_token_strs": True}
    tokens = (await server.http.post("/v1/tokenize", json=body)).json()
    assert len(tokens["token_strs"]) == tokens["count"] == len(tokens["tokens"])
    assert "".join(tokens["token_strs"]).startswith("W")
    back = {"model": MODEL, "tokens": tokens["tokens"]}
    text = (await server.http.post("/v1/detokenize", json=back)).json()
    assert text == {"prompt": body["prompt"]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/tokenize", {"model": MODEL}),
        ("/v1/tokenize", {"prompt": 3}),
        ("/v1/tokenize", {"messages": []}),
        ("/v1/tokenize", {"messages": [{"role": "oracle", "content": "x"}]}),
        ("/v1/detokenize", {"model": MODEL}),
        ("/v1/detokenize", {"tokens": [-1]}),
        ("/v1/detokenize", {"tokens": [10**9]}),
        ("/v1/detokenize", {"tokens": "all"}),
    ],
)
async def test_nonsense_is_refused(server: Server, path: str, body: dict[str, Any]) -> None:
    answer = await server.http.post(path, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
