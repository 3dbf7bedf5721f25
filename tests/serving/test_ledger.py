"""The ledger as a client meets it: counts agree with it, strangers have nothing of it, and losing
it costs nothing but tokens.
"""

from __future__ import annotations

from typing import Any

import pytest

from sessions.memory_store import MemoryStore
from sessions.records import LEDGER, Kind
from tests.serving.asks import PATHS
from tests.serving.server import Server, serving, settings
from tests.serving.sessions import Session

CALL = {"call": {"tool": "forecast", "arguments": {"days": 1, "place": "Bergen"}}}
SAID = [{"think": "pondering  this"}, {"text": "Checking. "}, CALL]
COUNTS = {"messages": "/v1/messages/count_tokens", "responses": "/v1/responses/input_tokens"}
MINE = {"authorization": "Bearer none"}


class Forgetful(MemoryStore):
    """A store that takes ledger records and has none, or has spoilt ones."""

    spoilt = False

    async def get(self, kind: Kind[Any], owner: str, *ids: str, renew: Any = None) -> list[Any]:
        if kind is LEDGER:
            return [b"spoilt" if self.spoilt else None] * len(ids)
        return await super().get(kind, owner, *ids, renew=renew)


def keeps(server: Server) -> bool:
    """Whether the second prompt begins with the first and what was generated."""
    first, second = server.engine.jobs
    whole = [*first.prompt, *server.engine.output[first.turn]]
    return second.prompt[: len(whole)] == whole


async def played(server: Server, api: str, change: Any = None) -> Session:
    server.says(*SAID)
    session = Session(server, api, stream=True)
    await session.turn()
    if change is not None:
        session.body["extra_headers"] = change
    asked = {name: value for name, value in session.body.items() if name != "extra_headers"}
    await session.turn()
    session.body = asked
    await session.close()
    return session


@pytest.mark.parametrize("api", COUNTS)
async def test_counts_are_of_the_prompt_that_is_generated_from(api: str) -> None:
    async with serving(settings(model={"family": "qwen3_5"})) as server:
        session = await played(server, api)
        counted = await server.http.post(COUNTS[api], json=session.body, headers=MINE)
        assert counted.json()["input_tokens"] == len(server.engine.jobs[1].prompt)
        assert keeps(server)


async def test_a_stranger_has_nothing_of_it() -> None:
    async with serving(settings(model={"family": "qwen3_5"})) as server:
        await played(server, "chat", {"Authorization": "Bearer somebody else"})
        assert not keeps(server)


@pytest.mark.parametrize("spoilt", [False, True])
@pytest.mark.parametrize("api", PATHS)
async def test_without_it_replies_are_rendered_anew(api: str, spoilt: bool) -> None:
    store = Forgetful()
    store.spoilt = spoilt
    async with serving(settings(model={"family": "qwen3_5"}), store=store) as server:
        session = await played(server, api)
        assert len(session.answers) == 2
        decode = server.ingress.models[0].folder.tokenizer.decode
        assert "pondering  this" in decode(server.engine.jobs[1].prompt)


async def test_what_preparing_costs_and_what_the_ledger_gave_are_figures() -> None:
    async with serving(settings(model={"family": "qwen3_5"})) as server:
        await played(server, "messages")
        figures = (await server.http.get("/metrics")).text
    for stage in ("decode", "plan", "ledger", "finish"):
        line = f'treadle_prepare_seconds_count{{model="lab-model",stage="{stage}"}} 2.0'
        assert line in figures
    name = "treadle_replies_replayed_total"
    assert f'{name}{{model="lab-model",outcome="spliced"}} 1.0' in figures
    assert f'{name}{{model="lab-model",outcome="rendered"}} 0.0' in figures
    assert 'treadle_tokenizer_memo{model="lab-model",outcome="hit"}' in figures
