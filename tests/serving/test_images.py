"""Images reach the engine, keep prompts apart in every cache, count as they are run, or are refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.serving.asks import PATHS, ask
from tests.serving.pictures import base64, part, png, question, showing
from tests.serving.server import Server, serving, settings
from tests.serving.test_failover import streamed
from turns.blocks import Image

RED, BLUE = base64(png(280, 140, 9)), base64(png(280, 140, 200))
TOKENS = 10 * 5  # the scripted sight: squares of 28 pixels
SEEING = {"family": "gemma4"}
COUNTS = {"messages": "/v1/messages/count_tokens", "responses": "/v1/responses/input_tokens"}


async def posted(server: Server, path: str, body: dict[str, Any]) -> Any:
    answer = await server.http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def cached(server: Server, api: str, *pictures: str) -> int:
    """Prompt tokens of a request with these pictures that the engine's cache had."""
    answer = (await posted(server, PATHS[api], showing(api, *pictures)))["usage"]
    details = answer.get("prompt_tokens_details") or answer.get("input_tokens_details") or {}
    return int(answer.get("cache_read_input_tokens", details.get("cached_tokens", 0)))


def read_by(usage: dict[str, Any]) -> int:
    """All tokens of a prompt, however the API spells them."""
    fresh = usage.get("input_tokens", usage.get("prompt_tokens", 0))
    return int(fresh + usage.get("cache_read_input_tokens", 0))


@pytest.mark.parametrize("api", PATHS)
async def test_prompts_share_a_cache_up_to_the_first_different_picture(api: str) -> None:
    async with serving(settings(model=SEEING)) as server:
        server.says({"text": "A dot."})
        assert await cached(server, api, RED) == 0
        again = await cached(server, api, RED)
        other = await cached(server, api, BLUE)
        red, _, blue = server.engine.jobs
    (shown,) = red.pictures
    assert (shown.media_type, base64(shown.data), shown.length) == ("image/png", RED, TOKENS)
    assert red.prompt == blue.prompt
    assert red.prompt[shown.at : shown.at + TOKENS] == [shown.pad] * TOKENS
    assert again >= shown.at + TOKENS - 16
    assert other == shown.at // 16 * 16 > 0, "what stands before the pictures is the same"


async def test_the_router_knows_what_a_cache_holds_of_pictures() -> None:
    """What the ingress asks for is what the engine's events told the router."""
    async with serving(settings(model=SEEING)) as server:
        for picture in (RED, RED, BLUE):
            await posted(server, PATHS["messages"], showing("messages", picture))
        engine = server.engine
        model = server.ingress.models[0]
        for job in engine.jobs:
            assert job.conversation is not None
            prompt = model.folder.prompter.prepare(job.conversation)
            taken = await model.choose(job.conversation, prompt)
            assert taken.overlap_tokens == len(job.prompt) // 16 * 16
            model.release(taken)
        unseen = base64(png(280, 140, 77))
        turn = engine.jobs[0].conversation
        assert turn is not None
        image = Image("image/png", unseen)
        (message,) = turn.messages
        other = replace(turn, messages=(replace(message, blocks=(message.blocks[0], image)),))
        prompt = model.folder.prompter.prepare(other)
        taken = await model.choose(other, prompt)
        assert taken.overlap_tokens == prompt.pictures[0].at // 16 * 16
        model.release(taken)


@pytest.mark.parametrize("api", PATHS)
async def test_a_count_is_what_is_run(api: str) -> None:
    async with serving(settings(model=SEEING)) as server:
        body = showing(api, RED, BLUE)
        answer = await posted(server, PATHS[api], body)
        prompt = server.engine.jobs[-1].prompt
        assert read_by(answer["usage"]) == len(prompt)
        if api in COUNTS:
            body.pop("max_tokens", None)
            assert (await posted(server, COUNTS[api], body))["input_tokens"] == len(prompt)
        else:
            told = await posted(server, "/v1/tokenize", body)
            assert (told["count"], told["tokens"]) == (len(prompt), prompt)


async def test_a_picture_in_a_result_is_shown_and_a_turn_without_any_has_none() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [part("messages", RED)],
    }
    said = [
        question("messages", BLUE),
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    async with serving(settings(model=SEEING)) as server:
        for body in (ask("messages", messages=said), ask("messages")):
            await posted(server, PATHS["messages"], body)
        seen, none = server.engine.jobs
    assert [base64(one.data) for one in seen.pictures] == [BLUE, RED]
    assert none.pictures == ()
    assert seen.salt == none.salt == ""


async def test_a_picture_goes_on_with_its_turn_when_the_replica_dies() -> None:
    engine = {"replicas": 2, "options": {"inline": True}}
    async with serving(settings(model=SEEING | {"engine": engine})) as server:
        server.says({"text": "one two three four five six seven"}, tokens={"step_ms": 2})
        engines = [one.engine for one in server.replicas["lab-model"].values()]
        raw = await streamed(server, "messages", server.kill, 3, **showing("messages", RED))
        jobs = sorted((job for one in engines for job in one.jobs), key=lambda job: job.resumed)
    assert b"message_stop" in raw
    first, second = jobs
    assert second.resumed > 0
    assert second.pictures == first.pictures
    assert base64(second.pictures[0].data) == RED


@pytest.mark.parametrize("api", PATHS)
async def test_an_engine_that_sees_none_is_given_none(api: str) -> None:
    async with serving(settings(model=SEEING)) as server:
        fleet = server.fleets["lab-model"]
        blind = {name: replace(card, sees_images=False) for name, card in fleet.cards.items()}
        fleet.replace(blind)
        refused = await server.http.post(PATHS[api], json=showing(api, RED))
        assert refused.status_code == 400
        assert "sees no images" in refused.json()["error"]["message"]
        assert (await server.http.post(PATHS[api], json=ask(api))).status_code == 200
