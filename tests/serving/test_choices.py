"""`n` of Chat: as many turns of one prompt, one response."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest

from protocols.chat.choice import many
from protocols.chat.choices import ChoicesEncoder
from protocols.registry import APIS
from tests.protocols import apis
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import Server, serving, settings
from tests.serving.waits import until
from turns.events import TurnFailed

PATH = PATHS["chat"]


def body(count: int, **fields: Any) -> dict[str, Any]:
    return ask("chat", n=count, tools=TOOLS["chat"], **fields)


async def idle(server: Server) -> None:
    await until(lambda: not server.replica.inner.open_turns)
    assert len(server.conductor) == 0


async def test_each_choice_is_a_reply_of_its_own_to_one_prompt(server: Server) -> None:
    server.says({"think": "Hm."}, {"text": "Rain."}, {"call": {"tool": "forecast"}})
    one = (await server.http.post(PATH, json=body(1))).json()
    three = (await server.http.post(PATH, json=body(3, seed=7))).json()
    assert [choice["index"] for choice in three["choices"]] == [0, 1, 2]
    messages = [choice["message"] for choice in three["choices"]]
    for message in messages:
        assert message["content"] == "Rain."
        assert message["reasoning_content"] == "Hm."
    names = {message["tool_calls"][0]["id"] for message in messages}
    assert len(names) == 3
    assert {choice["finish_reason"] for choice in three["choices"]} == {"tool_calls"}
    usage, alone = three["usage"], one["usage"]
    assert usage["prompt_tokens"] == alone["prompt_tokens"]
    assert usage["completion_tokens"] == 3 * alone["completion_tokens"]
    jobs = server.engine.jobs
    assert len({tuple(job.prompt) for job in jobs}) == 1
    assert [job.sampling.seed for job in jobs] == [None, 7, 8, 9]
    await idle(server)


@pytest.mark.parametrize("usage", [True, False])
async def test_a_stream_folds_into_the_same_choices(server: Server, usage: bool) -> None:
    server.says({"think": "Hm."}, {"text": "Rain."}, {"call": {"tool": "forecast"}})
    fields = {"stream": True, "stream_options": {"include_usage": usage}}
    answer = await server.http.post(PATH, json=body(2, **fields))
    chunks = [data for _, data in apis.parse(answer.content)]
    assert chunks.pop() == "[DONE]"
    assert "[DONE]" not in chunks
    assert len({chunk["id"] for chunk in chunks}) == 1
    last = [chunk for chunk in chunks if not chunk["choices"]]
    assert len(last) == usage
    if usage:
        assert last == [chunks[-1]]
        assert last[0]["usage"]["completion_tokens"] > 2
    for index in (0, 1):
        mine = [one for chunk in chunks for one in chunk["choices"] if one["index"] == index]
        text = "".join(one["delta"].get("content") or "" for one in mine)
        assert text == "Rain."
        assert [one["finish_reason"] for one in mine if one["finish_reason"]] == ["tool_calls"]


async def test_the_sdk_reads_them(server: Server) -> None:
    server.says({"text": "Rain."})
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k") as sdk:
        async with sdk.chat.completions.stream(**body(3)) as stream:
            whole = await stream.get_final_completion()
        assert [choice.message.content for choice in whole.choices] == ["Rain."] * 3


async def test_a_dispatch_says_whose_call_it_is(server: Server) -> None:
    server.says({"call": {"tool": "forecast"}})
    headers = {"x-treadle-dispatch": "events"}
    answer = await server.http.post(PATH, json=body(2, stream=True), headers=headers)
    said = [data for name, data in apis.parse(answer.content) if name == "tool_call_dispatch"]
    assert sorted(one["choice_index"] for one in said) == [0, 1]


@pytest.mark.parametrize("stream", [True, False])
async def test_one_that_fails_fails_them_all(server: Server, stream: bool) -> None:
    server.says({"text": "word " * 8}, fail_after=3)
    answer = await server.http.post(PATH, json=body(2, stream=stream))
    if stream:
        events = apis.parse(answer.content)
        assert events[-1][1] == "[DONE]"
        assert "error" in events[-2][1]
        assert answer.content.count(b"[DONE]") == 1
    else:
        assert answer.status_code == 500
        assert set(answer.json()) == {"error"}
    await idle(server)


async def test_a_fleet_that_takes_only_some_refuses_them_all() -> None:
    async with serving(settings(options={"max_turns": 2})) as server:
        server.says({"text": "ok"}, tokens={"step_ms": 20})
        answer = await server.http.post(PATH, json=body(8))
        assert answer.status_code in (200, 429)
        await idle(server)


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_ends_the_work_of_all(server: Server, stream: bool) -> None:
    server.says({"text": "word " * 2000}, tokens={"step_ms": 5})
    asking = asyncio.ensure_future(server.http.post(PATH, json=body(3, stream=stream)))
    await until(lambda: server.engine.stats().running == 3)
    asking.cancel()
    await until(lambda: len(server.engine.aborts) == 3)
    await idle(server)


async def test_silent_choices_are_kept_alive() -> None:
    async with serving(settings(ingress={"keepalive_s": 0.05})) as server:
        server.says({"text": "late"}, tokens={"first_after_ms": 400})
        answer = await server.http.post(PATH, json=body(2, stream=True))
        assert answer.content.startswith(b"data: ")
        assert answer.content.count(b'"delta":{}') > 3


def test_nothing_is_said_behind_a_failure() -> None:
    """A keep-alive may come while the last words wait for their reader."""
    turns = many(APIS["chat"].decode(json.dumps(body(2)).encode(), {}, turn_id="t"))
    encoder = ChoicesEncoder(turns, created=0, model="m")
    assert encoder.keepalive()
    assert encoder.encode(0, [TurnFailed("internal", "broke")]).endswith(b"[DONE]\n\n")
    assert encoder.keepalive() == b""


async def test_so_many_and_no_more(server: Server) -> None:
    answer = await server.http.post(PATH, json=body(17))
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "n"
