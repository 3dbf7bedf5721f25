"""What turn N generated is the beginning of the prompt of turn N + 1, as the engine sees it."""

from __future__ import annotations

from typing import Any

import pytest

from families import registry
from families.family import Family
from parsers import grammars
from prompts.prompter import Prompter
from tests.serving.asks import PATHS
from tests.serving.server import Server, serving, settings
from tests.serving.sessions import Session
from turns.frames import Job

BLOCK = 16
SECRET = "pondering"
CALL = {"call": {"tool": "forecast", "arguments": {"place": "Bergen", "days": 1}}}
ALONE = {"call": {"tool": "forecast", "arguments": {"days": 3, "place": "Å <b>"}}}
SAYS: list[list[dict[str, Any]]] = [
    [{"think": f"{SECRET}  this\n\n"}, {"text": "Checking. "}, CALL],
    [{"think": f"{SECRET} more"}, CALL, {"think": f"{SECRET} still"}, ALONE],
    [{"think": f"{SECRET} enough"}, {"text": "It  rains."}],
    [{"text": "One look."}, ALONE],
    [{"think": f"{SECRET} again"}, CALL],
    [{"text": "Wind."}],
]
"""Six turns: calls among reasoning, and a question after the third."""

FAMILIES = registry.known()
ONE_WAY = [
    pytest.param(name, list(PATHS)[n % 3], bool(n % 2), id=name) for n, name in enumerate(FAMILIES)
]
EVERY_WAY = [
    pytest.param(name, api, stream, id=f"{name}-{api}-{'stream' if stream else 'whole'}")
    for name in ("qwen3_5", "qwen3")
    for api in PATHS
    for stream in (True, False)
]


def sayable(family: Family, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What of it the family can say at all, and can say more than once."""
    grammar = grammars.get(family.grammar)
    calls = grammar.calls is not None and grammar.calls.spelling is not None
    can = {"text": True, "call": calls, "think": reasons(family)}
    return [item for item in said if can[next(iter(item))]] or [{"text": "Hm."}]


def reasons(family: Family) -> bool:
    return family.thinking.default == "on" and grammars.get(family.grammar).reasoning is not None


def shared(left: list[int], right: list[int]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(left), len(right)))


async def played(server: Server, session: Session, family: Family) -> None:
    for said in SAYS:
        server.says(*sayable(family, said))
        await session.turn()
    await session.close()


def check_of(
    family: Family,
    prompter: Prompter,
    jobs: list[Job],
    output: dict[str, list[int]],
    cached: list[int],
    *,
    block: int,
) -> None:
    """Every full block of prompt(N) + output(N), or what the policy says: `cached` is what the
    engine found of each turn.
    """
    agentic = bool(family.replay.agentic)
    assert len(jobs) == len(SAYS)
    for n in range(1, len(SAYS)):
        last = jobs[n - 1]
        before, prompt = [*last.prompt, *output[last.turn]], jobs[n].prompt
        # the last token of an answer was never fed to the model, so no cache has it
        kept = shared(before[:-1], prompt)
        assert cached[n] == min(kept, len(prompt) - 1) // block * block
        calls = any("call" in item for item in sayable(family, SAYS[n - 1]))
        always = family.replay.keep == "always" or agentic or family.thinking.default == "none"
        if always or (family.replay.keep == "tool_loop" and calls):
            assert prompt[: len(before)] == before, n
        else:
            turn = jobs[n].conversation
            assert turn is not None
            assert prompt == prompter.prepare(turn).ids
            assert SECRET not in prompter.tokenizer.decode(prompt)


@pytest.mark.parametrize(("name", "api", "stream"), [*EVERY_WAY, *ONE_WAY])
async def test_a_session_keeps_its_tokens(name: str, api: str, stream: bool) -> None:
    family = registry.get(name)
    async with serving(settings(model={"family": name})) as server:
        session = Session(server, api, stream=stream)
        await played(server, session, family)
        prompter, engine = server.ingress.models[0].folder.prompter, server.engine
        check_of(family, prompter, engine.jobs, engine.output, session.cached, block=BLOCK)
