"""Every request that real harnesses were seen to send, through the whole server: it is served, the
model sees what was said, what it does not see is named, and the turns of a session share a prefix.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from prompts.prompter import Prompt
from tests.protocols.apis import FIXTURES
from tests.protocols.test_fixtures import decoded
from tests.serving.server import MODEL, Server, serving, settings
from turns.blocks import Opaque, Text, ToolResult
from turns.turn import Turn

UNSEEN = {"context_management", "safeguards", "web_search", "image_generation"}
"""All that is in the recordings and that nobody acts on: each must be named in the header."""

SESSIONS = [
    ("claude-anthropic-turn1", "claude-anthropic-turn2-toolresult", "claude-anthropic-turn3-second-user"),
    ("codex-responses-fallback-turn1", "codex-responses-fallback-turn2", "codex-responses-fallback-turn3-second-user"),
    ("codex-responses-codemode-turn1", "codex-responses-codemode-turn2"),
    ("openclaw-chat-turn1", "openclaw-chat-turn2"),
]  # fmt: skip
"""Recordings of turns that follow each other."""

OWN_TAIL = {"openclaw-chat-turn1": 600}
"""Tokens at the end of a prompt that the harness itself puts anew behind every turn."""


def request(name: str) -> dict[str, Any]:
    path = FIXTURES / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no fixture at {path}; set TREADLE_FIXTURES")
    found: dict[str, Any] = json.loads(path.read_text())["request"]
    return found


def names() -> list[str]:
    found = []
    for path in sorted(FIXTURES.glob("*.json")):
        sent = json.loads(path.read_text()).get("request") or {}
        if isinstance(sent.get("body"), dict):
            found.append(path.stem)
    if not found:
        pytest.skip(f"no fixtures in {FIXTURES}; set TREADLE_FIXTURES")
    return found


async def post(server: Server, sent: dict[str, Any]) -> Any:
    """The answer. A turn of a socket goes on from what is not here: it is asked without that."""
    body = sent["body"] | {"model": MODEL}
    body.pop("previous_response_id", None)
    kept = ("anthropic", "x-", "session", "thread", "user-agent")
    headers = {
        name: value
        for name, value in sent.get("headers") or ()
        if name.lower().startswith(kept) and value.isascii() and "<" not in value
    }
    path = sent["path"].split("?")[0]
    return await server.http.post(path, json=body, headers=headers)


async def test_every_recording_is_served_and_what_is_unseen_is_named() -> None:
    async with serving(settings(model={"family": "qwen3_coder"})) as server:
        server.says({"text": "ok"})
        for name in names():
            sent = request(name)
            answer = await post(server, sent)
            assert answer.status_code == 200, (name, answer.text[:500])
            told = answer.headers.get("x-treadle-ignored", "").split(", ")
            assert {one.split(":")[-1] for one in told if one} <= UNSEEN, name
            expected = {one.split(":")[-1] for one in decoded(sent).echo["ignored"]}
            if not sent["path"].endswith("count_tokens"):
                assert expected == {one.split(":")[-1] for one in told if one}, name
        counted = (await server.http.get("/metrics")).text
        assert 'treadle_ignored_total{api="messages"' in counted
        assert 'treadle_ignored_total{api="responses"' in counted


def prepared(server: Server, turn: Turn) -> tuple[Prompt, str]:
    prompter = server.ingress.models[0].folder.prompter
    return prompter.prepare(turn), prompter.render(turn)


async def test_every_word_is_in_the_prompt(server: Server) -> None:
    for name in names():
        turn = decoded(request(name))
        _, text = prepared(server, turn)
        flat = " ".join(text.split())
        for message in turn.messages:
            for block in message.blocks:
                assert not isinstance(block, Opaque), name
                for one in block.content if isinstance(block, ToolResult) else (block,):
                    if isinstance(one, Text) and "x-anthropic-billing-header" not in one.text:
                        assert " ".join(one.text.split())[:2000] in flat, (name, one.text[:200])


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session[0])
async def test_the_turns_of_a_session_share_their_prefix(session: tuple[str, ...]) -> None:
    """With a family whose template keeps the reasoning of earlier turns, as agentic ones do."""
    async with serving(settings(model={"family": "nemotron3"})) as server:
        before: Prompt | None = None
        for at, name in enumerate(session):
            prompt, _ = prepared(server, decoded(request(name)))
            assert prompt.reply_at > 0
            if before is not None:
                shared = before.reply_at - OWN_TAIL.get(session[at - 1], 0)
                assert prompt.ids[:shared] == before.ids[:shared], name
            before = prompt
