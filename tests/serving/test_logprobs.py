"""How likely the tokens of an answer were: on Chat and Responses, streamed and whole alike."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.protocols import apis
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import MODEL, Server, serving, settings

WORDS = "Rain, naïve and 🌧 wet."
SAID: list[Any] = [
    {"think": "Is it wet?"},
    {"text": WORDS},
    {"call": {"tool": "forecast", "arguments": {"place": "Oslo"}}},
    {"text": "More."},
]
ASKED: dict[str, dict[str, Any]] = {
    "chat": {"logprobs": True, "top_logprobs": 2},
    "responses": {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
}
EACH = pytest.mark.parametrize("api", ASKED)


async def texts(server: Server, api: str, *, stream: bool, **fields: Any) -> list[Any]:
    """The logprobs of each text of the answer."""
    body = ask(api, stream=stream, tools=TOOLS[api], **fields)
    answer = await server.http.post(PATHS[api], json=body)
    assert answer.status_code == 200, answer.text
    if stream:
        assert apis.problems(api, answer.content) == []
        events = [data for _, data in apis.parse(answer.content) if isinstance(data, dict)]
    else:
        events = [answer.json()]
    if api == "chat":
        choices = [choice for event in events for choice in event["choices"]]
        return [one["logprobs"]["content"] for one in choices if one.get("logprobs")]
    if stream:
        deltas = [e for e in events if e["type"] == "response.output_text.delta"]
        last = events[-1]["response"]
        done = [e["logprobs"] for e in events if e["type"] == "response.output_text.done"]
        assert [one for delta in deltas for one in delta["logprobs"]] == flat(done)
    else:
        last = events[0]
    messages = [item for item in last["output"] if item["type"] == "message"]
    return [item["content"][0]["logprobs"] for item in messages]


def flat(lists: list[Any]) -> list[Any]:
    return [one for part in lists for one in part]


def text_of(drawn: list[Any]) -> str:
    return bytes(byte for one in drawn for byte in one["bytes"]).decode()


@EACH
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("per_step", [1, 5])
async def test_the_tokens_of_visible_text_and_no_others(
    server: Server, api: str, stream: bool, per_step: int
) -> None:
    server.says(*SAID, tokens={"per_step": per_step})
    drawn = flat(await texts(server, api, stream=stream, **ASKED[api]))
    assert text_of(drawn).replace("\n", "") == f"{WORDS}More."
    for one in drawn:
        assert -100 <= one["logprob"] <= 0
        assert len(one["top_logprobs"]) == 2
        assert one["token"].encode() == bytes(one["bytes"]) or "\ufffd" in one["token"]


@EACH
@pytest.mark.parametrize("stream", [True, False])
async def test_they_change_nothing_else(server: Server, api: str, stream: bool) -> None:
    """Nor is anything made where nobody asked."""
    server.says(*SAID)
    plain = await texts(server, api, stream=stream)
    assert not any(plain)
    asked = await texts(server, api, stream=stream, **ASKED[api])
    assert any(asked)
    first, second = (server.engine.output[job.turn] for job in server.engine.jobs)
    assert first == second


@EACH
async def test_stream_and_whole_say_the_same(server: Server, api: str) -> None:
    server.says(*SAID)
    whole = flat(await texts(server, api, stream=False, **ASKED[api]))
    streamed = flat(await texts(server, api, stream=True, **ASKED[api]))
    assert whole == streamed


async def test_the_sdk_reads_them() -> None:
    async with serving(settings()) as server:
        server.says({"text": "Rain."})
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k") as sdk:
            say: Any = [{"role": "user", "content": "?"}]
            whole = await sdk.chat.completions.create(model=MODEL, messages=say, logprobs=True)
            made = whole.choices[0].logprobs
            assert made is not None
            assert made.content is not None
            assert "".join(one.token for one in made.content) == "Rain."
            assert all(one.top_logprobs == [] for one in made.content)


@EACH
@pytest.mark.parametrize("top", [-1, 21])
async def test_too_many_are_refused_by_name(server: Server, api: str, top: int) -> None:
    fields = ASKED[api] | {"top_logprobs": top}
    answer = await server.http.post(PATHS[api], json=ask(api, **fields))
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "top_logprobs"
