"""Every request of the corpus and of real harnesses is counted alike by all who count.

The counter of its API, what the stream says at its start, the usage at its end, the tokens that
`tokenize` gives, and the prompt that the engine was given: to the token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.protocols import apis
from tests.serving.asks import PATHS
from tests.serving.corpus.cases import OTHER_ROOMS, cases
from tests.serving.corpus.steps import api_of
from tests.serving.server import MODEL, Server, serving, settings

COUNTERS = {
    "messages": ("/v1/messages/count_tokens", "input_tokens"),
    "responses": ("/v1/responses/input_tokens", "input_tokens"),
    "chat": ("/v1/tokenize", "count"),
}
Found = tuple[str, str, dict[str, Any]]
"""Where a request is from, its API, its body."""


def of_harnesses() -> Iterator[Found]:
    for path in sorted(Path(apis.FIXTURES).glob("*.json")):
        request = json.loads(path.read_text()).get("request") or {}
        body, where = request.get("body"), str(request.get("path")).partition("?")[0]
        for api, own in PATHS.items():
            if isinstance(body, dict) and where.endswith(own):
                yield path.stem, api, body


def of_the_corpus() -> Iterator[Found]:
    for case in cases():
        if case["api"] not in OTHER_ROOMS:
            for body in _bodies(case["request"]):
                yield case["id"], api_of(case, body), body


def _bodies(value: Any) -> Iterator[dict[str, Any]]:
    """All requests that stand in what a case says of its requests."""
    match value:
        case {"messages": list()} | {"input": str() | list()}:
            yield value
        case dict():
            for inner in value.values():
                yield from _bodies(inner)
        case list():
            for inner in value:
                yield from _bodies(inner)
        case _:
            pass


async def counts(server: Server, api: str, body: dict[str, Any]) -> dict[str, int]:
    """What everybody counts, by who it is; nothing where the request is refused by all."""
    body = {name: value for name, value in body.items() if name not in LEFT_OUT} | {"model": MODEL}
    if api == "messages":
        body |= {"max_tokens": body.get("max_tokens") or 400}
    path, field = COUNTERS[api]
    counted = await server.http.post(path, json=body)
    told = {"include_usage": True}
    asked = body | {"stream": True} | ({"stream_options": told} if api == "chat" else {})
    answer = await server.http.post(PATHS[api], json=asked)
    assert counted.status_code == answer.status_code, (counted.text, answer.text)
    if answer.status_code != 200:
        return {}
    found = {"counter": counted.json()[field], "engine": len(server.engine.jobs[-1].prompt)}
    for _, event in apis.parse(answer.content):
        found |= _told(api, event)
    return found


LEFT_OUT = {"previous_response_id", "store", "background", "stream_options"}
"""What asks for more than a turn: its first half, or another time."""


def _told(api: str, event: Any) -> dict[str, int]:
    match api, event:
        case "messages", {"type": "message_start", "message": {"usage": usage}}:
            return {"start": _whole(usage)}
        case "messages", {"type": "message_delta", "usage": usage}:
            return {"end": _whole(usage)}
        case "responses", {"type": "response.completed", "response": {"usage": usage}}:
            return {"end": usage["input_tokens"]}
        case "chat", {"usage": {"prompt_tokens": int(tokens)}}:
            return {"end": tokens}
        case _:
            return {}


def _whole(usage: dict[str, int]) -> int:
    cached = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    return usage["input_tokens"] + cached


@pytest.mark.parametrize("family", ["qwen3_5", "deepseek_v3_1"])
async def test_all_who_count_agree(family: str) -> None:
    requests = [*of_harnesses(), *of_the_corpus()]
    if not requests:
        pytest.skip(f"no corpus in {apis.CORPUS} and no fixtures in {apis.FIXTURES}")
    differ: dict[str, dict[str, int]] = {}
    agreed = 0
    async with serving(settings(model={"family": family})) as server:
        server.says({"text": "Fine."})
        for where, api, body in requests:
            found = await counts(server, api, body)
            agreed += bool(found)
            if len(set(found.values())) > 1:
                differ[where] = found
            server.engine.forget()
    assert not differ
    assert agreed > len(requests) * 0.8
