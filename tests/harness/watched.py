"""The server in this process, watched: every turn that a harness asks for, and what it was told.

A fault stands in front of one request each, in the order in which they come. Most of them are the
server's own (an engine that is full, one that fails); the rest is what a gateway would answer.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.protocols.apis import problems
from tests.serving.judging import told_of
from tests.serving.server import Server, listening, serving, settings
from turns.frames import Job

TURNS = {
    "/v1/messages": "messages",
    "/v1/responses": "responses",
    "/v1/chat/completions": "chat",
}
ENDS = (b"event: message_stop", b"event: response.completed", b"data: [DONE]")
BLOCK = 16
"""Tokens of a block of the scripted engine's prefix cache."""


@dataclass
class Seen:
    """A turn that was asked for: its body, and the response as far as it went."""

    api: str
    body: dict[str, Any]
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    said: bytearray = field(default_factory=bytearray)
    over: bool = False
    left: bool = False
    """The client was gone before the end."""

    @property
    def streamed(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def tell(self, message: dict[str, Any]) -> None:
        """Take in what is sent."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        elif message["type"] == "http.response.body":
            self.said += message.get("body", b"")
            self.over = not message.get("more_body", False)


Forward = Callable[[], Awaitable[None]]
Fault = Callable[["Watched", Any, Forward], Awaitable[None]]
"""What happens instead of a request that is simply served: given `send` and how to serve it."""


class Watched:
    """An ASGI application in front of a server's, which remembers.

    `seen` are the turns in order, `paths` all that was asked for; `faults` wait for their turns.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = ""
        self.seen: list[Seen] = []
        self.paths: list[str] = []
        self.faults: deque[Fault] = deque()

    @property
    def jobs(self) -> list[Job]:
        """What the engine was given."""
        return self.server.engine.jobs

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        app = self.server.outside.app
        self.paths.append(f"{scope['type']} {scope['path']}")
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in TURNS:
            await app(scope, receive, send)
            return
        # A place is free some 20 ms after its turn; the next request is in this process, and sooner.
        await self.server.calls.settled()
        first, body = await whole(receive)
        seen = Seen(TURNS[scope["path"]], json.loads(body))
        self.seen.append(seen)

        async def sending(message: Any) -> None:
            seen.tell(message)
            await send(message)

        async def receiving() -> Any:
            message = first.popleft() if first else await receive()
            seen.left |= message["type"] == "http.disconnect" and not seen.over
            return message

        async def forward() -> None:
            await app(told_of(scope, seen.said), receiving, sending)

        if self.faults:
            await self.faults.popleft()(self, sending, forward)
        else:
            await forward()

    def check(self) -> None:
        """Every stream that came to its end is one that a strict reader takes."""
        for seen in self.seen:
            # Codex leaves with the event that is the end, and does not wait for the stream's.
            if seen.streamed and (not seen.left or any(end in seen.said for end in ENDS)):
                assert problems(seen.api, bytes(seen.said)) == []

    def output(self, job: Job) -> list[int]:
        return self.server.engine.output[job.turn]

    def text(self, job: Job) -> str:
        """A prompt in plain."""
        tokenizer = self.server.ingress.models[0].folder.tokenizer
        return str(tokenizer.decode(job.prompt))

    def check_prefix(self, before: Job, after: Job) -> None:
        """`after` is `before` with its reply and more, and the engine's cache held all of that.

        The last token of a reply is never computed; what lacks to a whole block is never kept.
        """
        held = before.prompt + self.output(before)
        assert after.prompt[: len(held)] == held
        assert self.server.engine.cached[after.turn] >= (len(held) - 1) // BLOCK * BLOCK


async def whole(receive: Any) -> tuple[deque[Any], bytes]:
    """The messages of a request's body, and the body."""
    messages: deque[Any] = deque()
    while True:
        messages.append(await receive())
        if not messages[-1].get("more_body"):
            return messages, b"".join(message.get("body", b"") for message in messages)


@asynccontextmanager
async def watched(**changes: Any) -> AsyncIterator[Watched]:
    """A watched server with `changes` of its settings, on a port of its own."""
    async with serving(settings(**changes)) as server:
        found = Watched(server)
        async with listening(found) as found.url:
            yield found
        found.check()
