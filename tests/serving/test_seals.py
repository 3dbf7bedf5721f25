"""Reasoning comes back from its seal alone, and no seal of another kind does harm."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from deployments.edge import replay
from prompts.seals import PREFIX
from sessions.memory_store import MemoryStore
from tests.serving.server import Server, serving, settings
from tests.serving.sessions import Session

SECRET = "pondering  the <weather>"
SAID = [{"think": SECRET}, {"text": "Checking."}, {"call": {"tool": "forecast"}}]
SEALED = [
    pytest.param(api, stream, id=f"{api}-{'stream' if stream else 'whole'}")
    for api in ("messages", "responses")
    for stream in (True, False)
]


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving(settings(model={"family": "qwen3_5"})) as running:
        running.says(*SAID)
        yield running


def prompt(server: Server) -> str:
    """The text of the last turn's prompt."""
    decode = server.ingress.models[0].folder.tokenizer.decode
    return decode(server.engine.jobs[-1].prompt)


def forget(server: Server, **changes: Any) -> None:
    """A new store, and the settings of seals that are told."""
    chosen = settings(**changes)
    server.ingress.replay = replay(chosen, MemoryStore(), server.keeper, "the cluster's own")


def only_seals(session: Session, **changes: Any) -> None:
    """The client sends reasoning without its text."""
    name = "messages" if session.api == "messages" else "input"
    for item in session.body[name]:
        if item.get("type") == "reasoning":
            item.update({"summary": [], "content": []} | changes)
        elif item.get("role") == "assistant" and isinstance(item["content"], list):
            for block in item["content"]:
                if block["type"] == "thinking":
                    block.update({"thinking": ""} | changes)


@pytest.mark.parametrize(("api", "stream"), SEALED)
async def test_what_the_store_forgot_is_in_the_seal(server: Server, api: str, stream: bool) -> None:
    session = Session(server, api, stream=stream)
    await session.turn()
    forget(server)
    only_seals(session)
    await session.turn()
    assert SECRET in prompt(server)
    await session.close()


@pytest.mark.parametrize(
    ("api", "field"), [("messages", "signature"), ("responses", "encrypted_content")]
)
@pytest.mark.parametrize(
    "seal", ["", "EqQBCkYIBxgC", "treadle1.abc", f"{PREFIX}abc", f"{PREFIX}{'A' * 200}"]
)
async def test_a_seal_that_is_not_ours_is_no_error(
    server: Server, api: str, field: str, seal: str
) -> None:
    session = Session(server, api, stream=False)
    await session.turn()
    forget(server)
    only_seals(session, **{field: seal})
    await session.turn()
    assert SECRET not in prompt(server)
    assert "Checking." in prompt(server)
    await session.close()


async def test_secrets_are_rotated(server: Server) -> None:
    session = Session(server, "messages", stream=False)
    forget(server, seals={"secrets": ["old"]})
    await session.turn()
    only_seals(session)
    server.says({"text": "ok"})
    forget(server, seals={"secrets": ["new", "old"]})
    await session.turn()
    assert SECRET in prompt(server)
    forget(server, seals={"secrets": ["other"]})
    await session.turn()
    assert SECRET not in prompt(server)
    await session.close()


async def test_seals_of_one_client_are_nothing_to_another(server: Server) -> None:
    session = Session(server, "messages", stream=False)
    await session.turn()
    forget(server)
    only_seals(session)
    session.body["extra_headers"] = {"Authorization": "Bearer somebody else"}
    await session.turn()
    assert SECRET not in prompt(server)
    await session.close()


async def test_one_span_has_one_seal_wherever_it_is_shown(server: Server) -> None:
    session = Session(server, "responses", stream=True, store=True)
    answer = await session.turn()
    shown = answer.output[0].encrypted_content
    assert shown.startswith(PREFIX)
    kept = await server.http.get(
        f"/v1/responses/{answer.id}", headers={"authorization": "Bearer none"}
    )
    assert kept.json()["output"][0]["encrypted_content"] == shown
    await session.close()
