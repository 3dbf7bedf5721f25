"""Sessions on a real vLLM: what its own prefix cache held of each turn is what it should hold.

Real tokenizers and templates, official SDKs, every API, streaming and not, all at once. What the
model says is forced, in tokens that no encoder would choose: only the very ids that were generated
can be found again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from families import registry
from families.family import Family
from tests.serving.asks import PATHS
from tests.serving.server import Server, serving, settings
from tests.serving.sessions import Session
from tests.serving.test_replay import SAYS, check_of, sayable
from tests.serving.vllm.shared import BLOCK, SharedEngine
from turns.frames import Job

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(900),  # the first test starts the engine
    pytest.mark.filterwarnings("ignore"),  # torch and vLLM warn as they are imported
]

EVERY_WAY = [(api, stream) for api in PATHS for stream in (True, False)]
SOME_WAYS = [("messages", True), ("responses", False), ("chat", True)]
QUESTION = {"messages": "messages", "chat": "messages", "responses": "input"}
MODELS = [
    pytest.param("qwen3", "qwen3_folder", EVERY_WAY, id="qwen3-keeps-in-a-tool-loop"),
    pytest.param("qwen3_5", "tokens_alone", SOME_WAYS, id="qwen3_5-keeps"),
    pytest.param("deepseek_r1", "deepseek_folder", SOME_WAYS, id="deepseek_r1-drops"),
]


def session(server: Server, api: str, *, stream: bool) -> Session:
    """A session that shares nothing but tools with the others."""
    name = f"{api}-{stream}"
    asked: Any = f"I am {name}. Weather in Bergen?"
    if api != "responses":
        asked = [{"role": "user", "content": asked}]
    fields = {QUESTION[api]: asked, "extra_headers": {"x-session-id": name}}
    return Session(server, api, stream=stream, **fields)


def saying(family: Family) -> Any:
    """What each turn of each session says, by how many replies stand before it."""

    def say(job: Job) -> list[dict[str, Any]]:
        talk = job.conversation
        assert talk is not None
        replies = 0
        before = "user"
        for message in talk.messages:
            replies += message.role == "assistant" != before
            before = message.role
        return sayable(family, SAYS[replies])

    return say


@pytest.mark.parametrize(("name", "folder", "ways"), MODELS)
async def test_every_full_block_of_a_session_comes_from_the_cache(
    engine: SharedEngine,
    name: str,
    folder: str,
    ways: list[tuple[str, bool]],
    request: pytest.FixtureRequest,
) -> None:
    family = registry.get(name)
    where: Path = request.getfixturevalue(folder)
    model = {"family": name, "folder": str(where)}
    async with serving(settings(model=model, options={}), engine=engine) as server:
        prompter = engine.prompter = server.ingress.models[0].folder.prompter
        engine.say = saying(family)
        sessions = [session(server, api, stream=stream) for api, stream in ways]

        async def played(one: Session) -> None:
            for _ in SAYS:
                await one.turn()
            await one.close()

        await asyncio.gather(*map(played, sessions))
        jobs = server.engine.jobs
        for one, (api, stream) in zip(sessions, ways, strict=True):
            own = [
                job
                for job in jobs
                if job.conversation and job.conversation.session == f"{api}-{stream}"
            ]
            output = server.engine.output
            check_of(family, prompter, own, output, one.cached, block=BLOCK)
