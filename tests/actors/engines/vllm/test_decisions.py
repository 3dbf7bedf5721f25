"""A decision round on a real vLLM: it costs the interim result, and the next turn does not know it.

The model's weights are random, so it cannot be made to call: the call is written for it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from actors.reception import owner
from deployments.settings import AppSettings
from protocols.anthropic.api import Messages
from tests.actors.engines.vllm.driven import Driven
from tests.serving import server as serving_module
from tests.serving.server import Server, serving
from turns.blocks import ToolCall
from turns.events import Usage
from turns.reply import Reply

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore"),
]

ALICE = {"authorization": "Bearer alice"}
FLAG = {
    "type": "object",
    "properties": {"late": {"type": "boolean"}},
    "required": ["late"],
    "additionalProperties": False,
}
ANSWER = {
    "type": "object",
    "properties": {"decision": {"enum": ["continue", "stop"]}},
    "required": ["decision"],
    "additionalProperties": False,
}
BLOCK_SHARE = 0.02
"""What one block of the cache is of such a prompt: shares are known no better."""
INTERIM = (
    "INTERIM: chunk 12 of an unbounded stream; the stream is still running.\n"
    '{"rows":384,"verdict":"converged"}\nAnswer with JSON.'
)


class Shared:
    """The session's engine, lent to a server: it is neither started nor stopped again."""

    def __init__(self, driven: Driven) -> None:
        self._driven = driven

    async def start(self, *, on_frames: Any, on_kv: Any) -> Any:
        self._driven.listeners.append(on_frames)
        return self._driven.info

    async def stop(self) -> None:
        self._driven.listeners.clear()

    async def drain(self, timeout: float) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driven.engine, name)


@pytest_asyncio.fixture(loop_scope="session")
async def server(
    driven: Driven, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Server]:
    monkeypatch.setattr(serving_module, "make_engine", lambda *_: Shared(driven))
    model = {"name": "tiny", "folder": str(tiny), "family": "smollm2", "engine": {"kind": "vllm"}}
    chosen = AppSettings.model_validate({"models": [model], "ingress": {"open_calls": 8}})
    async with serving(chosen) as running:
        yield running


def sent(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "model": "tiny",
        "max_tokens": 8,
        "temperature": 0,
        "messages": messages,
        "tools": [{"name": "orders", "input_schema": FLAG}],
    }


async def turn(server: Server, messages: list[dict[str, Any]]) -> dict[str, Any]:
    answer = await server.http.post("/v1/messages", json=sent(messages), headers=ALICE)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def conversation(server: Server, about: str, *, asks: bool) -> tuple[float, float]:
    """A call, perhaps a decision while it runs, and the turn behind it: the cached shares of both."""
    user = {"role": "user", "content": f"Find {about}. " * 880}
    await turn(server, [user])
    call = {"type": "tool_use", "id": f"toolu_{asks}", "name": "orders", "input": {"late": True}}
    share = 0.0
    if asks:
        asked = Messages().decode(json.dumps(sent([user])).encode(), ALICE, turn_id="asked")
        made = Reply((ToolCall(str(call["id"]), "orders", '{"late": true}'),), "tool_use", Usage())
        server.outside.decisions._calls.note(owner(ALICE), asked, made, 0)
        told = (str(call["id"]), owner(ALICE), INTERIM, ANSWER)
        decision = await server.outside.decisions.decide(*told)
        share = decision.cached_tokens / decision.prompt_tokens
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "PARTIAL after 384 rows"}
    behind = [
        user,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    usage = (await turn(server, behind))["usage"]
    cached = usage["cache_read_input_tokens"]
    return share, cached / (cached + usage["input_tokens"])


async def test_a_decision_is_cached_and_leaves_the_next_turn_as_it_was(server: Server) -> None:
    _, without = await conversation(server, "open orders", asks=False)
    share, behind = await conversation(server, "late orders", asks=True)
    assert share >= 0.95
    assert behind >= 0.95
    assert behind >= without - BLOCK_SHARE
