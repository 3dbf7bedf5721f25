"""The official Node SDKs on the server in this process: what they stream and what they read whole.

They are installed by `npm ci` from the lock in `node/`. Every stream is read strictly as well.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import pytest
import pytest_asyncio

from tests.cluster import sdks
from tests.cluster.asks import APIS, tools
from tests.cluster.sdks import essence, request, stop
from tests.cluster.test_sdks import CALLS, ENDS, LENGTHS, SAYS, expected, said
from tests.harness.faults import full
from tests.harness.watched import Watched, watched
from tests.protocols.apis import ROOT

pytestmark = [
    pytest.mark.harness,
    pytest.mark.timeout(200),
    pytest.mark.asyncio(loop_scope="module"),
]
HERE = Path(__file__).parent / "node"
MADE = ROOT / ".run" / "node-sdks"
EACH = pytest.mark.parametrize("api", APIS)
MODELS: dict[str, Any] = {
    "messages": anthropic.types.Message,
    "responses": openai.types.responses.Response,
    "chat": openai.types.chat.ChatCompletion,
}
HARD = 'a\r\nb\rc\u2028d\u2029e\x85f\x0bg\x0ch\x1ci "j" \\k\n\ndata: l\n\nevent: m\n: n [DONE] \U0001f680 p'
WITHIN = 60.0
INSTALLS_WITHIN = 120


@cache
def installed() -> str:
    """Make the SDKs ready in MADE, once for their lock; "" or why they cannot be had."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "node or npm is not installed"
    lock = (HERE / "package-lock.json").read_text()
    stamp = MADE / "installed"
    if not (stamp.exists() and stamp.read_text() == lock):
        MADE.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, MADE)
        ran = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--prefix", str(MADE)],  # noqa: S607 - the person's own npm
            capture_output=True,
            text=True,
            timeout=INSTALLS_WITHIN,
            check=False,
        )
        if ran.returncode:
            return f"npm could not install them: {ran.stderr[-300:]}"
        stamp.write_text(lock)
    shutil.copy(HERE / "ask.mjs", MADE)
    return ""


def served(**options: Any) -> AbstractAsyncContextManager[Watched]:
    """A server that knows the words of `SAYS`; `options` are its engine's."""
    return watched(options={"scenario": str(ROOT / "tests/cluster/scenario.yaml")} | options)


class Node:
    """The SDKs in a process of Node: one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(
        self, server: Watched, api: str, body: dict[str, Any], **how: Any
    ) -> dict[str, Any]:
        """What the SDK makes of the answer: `answer` or `error`."""
        sent = {"url": server.url, "api": api, "body": body, **how}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(sent).encode() + b"\n")
        async with asyncio.timeout(WITHIN):
            found: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return found

    async def answer(self, server: Watched, api: str, body: dict[str, Any], *, stream: bool) -> Any:
        """The answer in Python's types."""
        found = await self.ask(server, api, body, stream=stream)
        assert "answer" in found, found
        return MODELS[api].model_validate(found["answer"])

    async def both(self, server: Watched, api: str, body: dict[str, Any]) -> Any:
        """The answer, streamed and whole alike."""
        streamed = await self.answer(server, api, body, stream=True)
        whole = await self.answer(server, api, body, stream=False)
        assert essence(streamed.to_dict()) == essence(whole.to_dict())
        return streamed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node() -> AsyncIterator[Node]:
    if reason := await asyncio.to_thread(installed):
        pytest.skip(f"no Node SDKs: {reason}")
    process = await asyncio.create_subprocess_exec(
        *("node", str(MADE / "ask.mjs")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    yield Node(process)
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), 20)
    finally:
        if process.returncode is None:
            process.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Watched]:
    async with served() as running:
        yield running


@EACH
@pytest.mark.parametrize("words", list(SAYS))
async def test_what_the_model_said_is_read(
    node: Node, server: Watched, api: str, words: str
) -> None:
    answer = await node.both(server, api, request(api, words, tools=tools(api)))
    assert said(api, answer) == expected(api, words)
    calls = any(kind == "call" for kind, *_ in SAYS[words])
    assert stop(api, answer) == (CALLS if calls else ENDS)[api]


@EACH
async def test_what_breaks_lines_elsewhere_is_only_text(
    node: Node, server: Watched, api: str
) -> None:
    call = {"tool": "calculator", "arguments": {"expression": HARD}}
    server.server.says({"think": HARD}, {"text": HARD}, {"call": call})
    try:
        answer = await node.both(server, api, request(api, "hard words", tools=tools(api)))
    finally:
        server.server.engine.says = None
    told = [("think", HARD), ("text", HARD), ("call", "calculator", {"expression": HARD})]
    assert said(api, answer) == told


@EACH
async def test_results_go_back_and_are_answered(node: Node, server: Watched, api: str) -> None:
    body = request(api, "two calls", tools=tools(api))
    first = await node.both(server, api, body)
    then = sdks.next_turn(api, body, first, ["345 it is", "rain, of course"])
    answer = await node.both(server, api, then)
    told_so = "They said: 345 it is\nrain, of course"
    assert said(api, answer) == [("think", "The tools have answered."), ("text", told_so)]


@EACH
async def test_an_answer_is_cut_at_max_tokens(node: Node, server: Watched, api: str) -> None:
    answer = await node.both(server, api, request(api, "a long answer", max_tokens=30))
    assert stop(api, answer) == LENGTHS[api]


@EACH
async def test_what_is_wrong_with_a_request_is_an_error_of_its_class(
    node: Node, server: Watched, api: str
) -> None:
    good = request(api, "only text")
    for stream in (True, False):
        unknown = await node.ask(server, api, good | {"model": "nobody"}, stream=stream)
        assert (unknown["error"]["name"], unknown["error"]["status"]) == ("NotFoundError", 404)
        wrong = await node.ask(server, api, good | {"temperature": "hot"}, stream=stream)
        assert (wrong["error"]["name"], wrong["error"]["status"]) == ("BadRequestError", 400)
        assert wrong["error"]["type"] == "invalid_request_error"
        assert wrong["error"]["request"]


@EACH
async def test_a_turn_that_dies_is_an_error(node: Node, server: Watched, api: str) -> None:
    at_once = request(api, "please fail at once")
    for stream in (True, False):
        error = (await node.ask(server, api, at_once, stream=stream))["error"]
        assert (error["name"], error["status"]) == ("InternalServerError", 500)
        assert "the scenario failed this turn" in error["message"]
    broken = await node.ask(server, api, request(api, "please fail"), stream=True)
    if api == "responses":  # the SDK gives it as it is
        assert broken["answer"]["status"] == "failed"
        broken["error"] = broken["answer"]["error"]
    assert "the scenario failed this turn" in broken["error"]["message"]


@EACH
async def test_a_full_engine_is_asked_again(node: Node, api: str) -> None:
    async with served(max_turns=1, max_waiting=0) as small:
        for stream in (True, False):
            small.faults.append(full)
            found = await node.ask(small, api, request(api, "only text"), stream=stream, retries=1)
            assert "answer" in found
        busy = 529 if api == "messages" else 429
        assert [seen.status for seen in small.seen] == [busy, 200, busy, 200]
        small.faults.append(full)
        error = (await node.ask(small, api, request(api, "only text"), stream=True))["error"]
        assert error["status"] == busy
