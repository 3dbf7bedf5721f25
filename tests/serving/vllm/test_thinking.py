"""Thinking off, effort and budget on a real vLLM: what the prompt says, how many tokens it takes.

The model is made to open its reasoning; what it thinks, and that it would never stop, is its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import Server, serving, settings
from tests.serving.vllm.shared import SharedEngine

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(900),  # the first test starts the engine
    pytest.mark.filterwarnings("ignore"),  # torch and vLLM warn as they are imported
]

LOW, MOST = 24, 60
SHUT = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
LIMITS = {"messages": "max_tokens", "responses": "max_output_tokens", "chat": "max_tokens"}
OFF: dict[str, dict[str, Any]] = {
    "messages": {"thinking": {"type": "disabled"}},
    "responses": {"reasoning": {"effort": "none"}},
    "chat": {"chat_template_kwargs": {"enable_thinking": False}},
}
EFFORT: dict[str, Any] = {
    "messages": lambda word: {"thinking": {"type": "adaptive"}, "output_config": {"effort": word}},
    "responses": lambda word: {"reasoning": {"effort": word}},
    "chat": lambda word: {"reasoning_effort": word},
}
EACH = pytest.mark.parametrize("api", PATHS)


@pytest_asyncio.fixture(loop_scope="session")
async def server(engine: SharedEngine, qwen3_folder: Path) -> AsyncIterator[Server]:
    prompt = {"efforts": {"low": LOW}}
    model = {"family": "qwen3", "folder": str(qwen3_folder), "prompt": prompt}
    async with serving(settings(model=model, options={}), engine=engine) as running:
        opened = running.ingress.models[0].folder.tokenizer.id_of("<think>")
        shut = lambda job: job.spec.tail.endswith(SHUT)  # noqa: E731
        engine.say = lambda job: () if shut(job) else (opened,)
        yield running


async def asked(server: Server, api: str, **fields: Any) -> tuple[str, int]:
    """The end of the prompt, and how many tokens the model reasoned."""
    body = ask(api, tools=TOOLS[api], **{LIMITS[api]: MOST, **fields})
    answer = await server.http.post(PATHS[api], json=body)
    assert answer.status_code == 200, answer.text
    job = server.engine.jobs[-1]
    ids = server.engine.output[job.turn]
    tokenizer = server.ingress.models[0].folder.tokenizer
    opened, closed = (tokenizer.id_of(word) for word in ("<think>", "</think>"))
    thought = 0
    if ids[0] == opened:
        thought = (ids.index(closed) if closed in ids else len(ids)) - 1
    told = answer.json()["usage"]
    details = told.get("output_tokens_details") or told.get("completion_tokens_details") or {}
    if "reasoning_tokens" in details:
        assert abs(details["reasoning_tokens"] - thought) <= 2  # the two marks
    return job.spec.tail, thought


@EACH
async def test_off_is_off(server: Server, api: str) -> None:
    tail, thought = await asked(server, api, **OFF[api])
    assert tail.endswith(SHUT)
    assert thought == 0


@EACH
async def test_an_effort_is_a_limit_of_tokens(server: Server, api: str) -> None:
    tail, low = await asked(server, api, **EFFORT[api]("low"))
    assert tail.endswith("<|im_start|>assistant\n")
    _, high = await asked(server, api, **EFFORT[api]("high"))
    assert low == LOW
    assert high == MOST - 1  # it thought to the end of the answer


@pytest.mark.parametrize(
    ("api", "fields"),
    [
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": 7}}),
        ("chat", {"thinking_budget": 7}),
        ("chat", {"reasoning": {"max_tokens": 7}}),
    ],
    ids=["messages", "chat", "chat-nested"],
)
async def test_a_budget_is_kept_to_the_token(
    server: Server, api: str, fields: dict[str, Any]
) -> None:
    _, thought = await asked(server, api, **fields)
    assert thought == 7
