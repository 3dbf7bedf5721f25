"""A model's own setting of the dispatch side channel, and clients that say otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols import apis
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import MODEL, serving, settings

CALL = b"tool_call_dispatch"


async def streamed(setting: str, api: str, headers: dict[str, str] | None = None) -> bytes:
    chosen = settings(model={"dispatch": setting})
    async with serving(chosen) as server:
        server.says({"call": {"tool": "forecast", "arguments": {"place": "A"}}})
        body: dict[str, Any] = ask(api, model=MODEL, stream=True, tools=TOOLS[api])
        answer = await server.http.post(PATHS[api], json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.content


@pytest.mark.parametrize("api", PATHS)
async def test_the_setting_is_for_clients_that_do_not_say(api: str) -> None:
    raw = await streamed("comments", api)
    assert raw.count(b": " + CALL) == 1
    assert apis.problems(api, raw) == []
    assert CALL not in await streamed("comments", api, {"x-treadle-dispatch": "off"})
    asked = await streamed("comments", api, {"x-treadle-dispatch": "events"})
    assert [name for name, _ in apis.parse(asked)].count(CALL.decode()) == 1


async def test_without_it_nothing_is_announced() -> None:
    assert CALL not in await streamed("", "chat")
