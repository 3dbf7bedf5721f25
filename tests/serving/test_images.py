"""Images reach engines that see them, keep prompts apart in every cache, or are refused."""

from __future__ import annotations

from typing import Any

import pytest

from router.blocks import chain
from tests.serving.asks import PATHS, ask
from tests.serving.server import Server, serving, settings

RED, BLUE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", "iVBORw0KGgoAAAANSUhEUgAAAAIAAAAC"


def with_image(api: str, data: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{data}"
    content: dict[str, Any] = {
        "messages": {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": data},
        },
        "chat": {"type": "image_url", "image_url": {"url": url}},
        "responses": {"type": "input_image", "image_url": url},
    }
    text = {"type": "input_text" if api == "responses" else "text", "text": "word " * 60}
    said = [{"role": "user", "content": [text, content[api]]}]
    return ask(api, **{"input" if api == "responses" else "messages": said})


async def cached(server: Server, api: str, data: str) -> int:
    """Prompt tokens of a request with an image that the engine's cache had."""
    answer = (await server.http.post(PATHS[api], json=with_image(api, data))).json()["usage"]
    details = answer.get("prompt_tokens_details") or answer.get("input_tokens_details") or {}
    return int(answer.get("cache_read_input_tokens", details.get("cached_tokens", 0)))


@pytest.mark.parametrize("api", PATHS)
async def test_prompts_with_different_images_share_no_cache(api: str) -> None:
    async with serving(settings(model={"family": "gemma4"})) as server:
        server.says({"text": "A dot."})
        assert await cached(server, api, RED) == 0
        assert await cached(server, api, RED) >= 64
        assert await cached(server, api, BLUE) == 0
        red, _, blue = server.engine.jobs
    assert red.prompt == blue.prompt
    assert red.salt != blue.salt
    hashes = [chain(job.prompt, 16, job.salt) for job in (red, blue)]
    assert not set(hashes[0]) & set(hashes[1])


async def test_an_image_in_a_result_counts_and_a_turn_without_any_has_no_salt() -> None:
    picture = with_image("messages", RED)["messages"][0]["content"][1]
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [picture]}
    said = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    async with serving(settings(model={"family": "gemma4"})) as server:
        for body in (ask("messages", messages=said), ask("messages")):
            assert (await server.http.post(PATHS["messages"], json=body)).status_code == 200
        seen, none = server.engine.jobs
    assert seen.salt.startswith("images-")
    assert none.salt == ""


@pytest.mark.parametrize("api", PATHS)
async def test_an_engine_that_sees_none_is_given_none(api: str) -> None:
    async with serving(settings(model={"family": "gemma4"})) as server:
        blind = {name: _blind(one.inner.card) for name, one in server.replicas["lab-model"].items()}
        server.fleets["lab-model"].replace(blind)
        refused = await server.http.post(PATHS[api], json=with_image(api, RED))
        assert refused.status_code == 400
        assert "sees no images" in refused.json()["error"]["message"]
        assert (await server.http.post(PATHS[api], json=ask(api))).status_code == 200


def _blind(card: Any) -> Any:
    return type(card)(
        **{name: getattr(card, name) for name in card.__struct_fields__} | {"sees_images": False}
    )
