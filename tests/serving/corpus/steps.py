"""One request of a case, sent to the server in both modes, with what the engine was given for it."""

from __future__ import annotations

import copy
import json
from typing import Any

import httpx
from msgspec import Struct, field

from tests.protocols import apis
from tests.serving.asks import PATHS
from tests.serving.server import Server

NAMES = {
    "anthropic.messages": "messages",
    "anthropic.count_tokens": "messages",
    "openai.chat": "chat",
    "openai.responses": "responses",
    "dispatch": "chat",
}
DISPATCH = ("tool_call_dispatch", "reasoning_dispatch")


class Step(Struct):
    """What came of one request. `raw` is the stream and `whole` the answer that is not streamed.

    `prompt` and `output` are token ids as the engine got and gave them, `text` the prompt decoded.
    `ended` says that the stream's body came to its end.
    """

    api: str
    body: dict[str, Any]
    headers: dict[str, str]
    status: int
    whole: dict[str, Any]
    answer: httpx.Headers
    raw: bytes = b""
    ended: bool = False
    prompt: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    text: str = ""

    @property
    def stream(self) -> list[tuple[str | None, Any]]:
        return apis.parse(self.raw)

    def kinds(self) -> list[str]:
        """The types of the stream's events, in order."""
        return [data["type"] for _, data in self.stream if isinstance(data, dict)]


def api_of(case: dict[str, Any], body: dict[str, Any]) -> str:
    """The API of a request; a case of rendering does not say which."""
    named = NAMES.get(case["api"])
    if named is not None:
        return named
    if "input" in body:
        return "responses"
    return "messages" if "max_tokens" in body else "chat"


async def send(
    server: Server,
    api: str,
    body: dict[str, Any],
    headers: dict[str, str] | None = None,
    query: str = "",
) -> Step:
    """Send the request as it is, then in the other mode, and see that both asked the same."""
    path = PATHS[api] + (f"?{query}" if query else "")
    first = await _once(server, path, body, headers or {})
    streamed = bool(body.get("stream"))
    other = await _once(server, path, body | {"stream": not streamed}, headers or {})
    stream, plain = (first, other) if streamed else (other, first)
    assert stream.status == plain.status or first.status == 200
    assert first.prompt == other.prompt
    if stream.raw:
        assert apis.problems(api, stream.raw, DISPATCH) == []
    return Step(
        api=api,
        body=copy.deepcopy(body),
        headers=headers or {},
        status=first.status,
        whole=plain.whole,
        answer=first.answer,
        raw=stream.raw,
        ended=stream.ended,
        prompt=first.prompt,
        output=first.output,
        text=server.ingress.models[0].folder.tokenizer.decode(first.prompt),
    )


async def _once(server: Server, path: str, body: Any, headers: dict[str, str]) -> Step:
    before = len(server.engine.jobs)
    raw, ended = b"", False
    sent = server.http.build_request("POST", path, json=body, headers=headers)
    answer = await server.http.send(sent, stream=True)
    async for piece in answer.aiter_raw():
        raw += piece
    ended = True
    await answer.aclose()
    streamed = answer.headers.get("content-type", "").startswith("text/event-stream")
    made = server.engine.jobs[before:]
    assert len(made) <= 1
    return Step(
        api="",
        body=body,
        headers=headers,
        status=answer.status_code,
        whole={} if streamed else json.loads(raw),
        answer=answer.headers,
        raw=raw if streamed else b"",
        ended=ended,
        prompt=made[0].prompt if made else [],
        output=server.engine.output.get(made[0].turn, []) if made else [],
    )
