"""Every stream that a server of these tests sends is read by the corpus's strict checker.

Where the client left, or a test cut the line, the stream is judged as far as it went: what stands
there must be right, and only its end may lack.
"""

from __future__ import annotations

from typing import Any

from actors.straight import KEY as STRAIGHT
from protocols.dispatch import CALL, REASONING
from tests.protocols.apis import CORPUS, problems

JUDGES = (CORPUS / "tools" / "strict.py").exists()
"""Without the corpus there is nobody to judge; `test_judging` then says so."""

TURNS = {
    "/v1/messages": "messages",
    "/v1/responses": "responses",
    "/v1/chat/completions": "chat",
}
EXTRA = ("tool_synopsis", "response.mcp_call.synopsis", CALL, REASONING)
"""Events of our own, sent to clients that ask for them."""

ENDS = frozenset(
    {
        "no message_stop or error",
        "stop_reason missing",
        "no terminal event",
        "no [DONE]",
        "no finish_reason",
        "arguments not a JSON object",
        "tool input is not a JSON object though not truncated",
    }
)
"""What is no fault of a stream that was cut."""


def faults(api: str, raw: bytes, *, cut: bool) -> list[str]:
    """What is wrong with a stream, or with as much as there is of a `cut` one."""
    whole = raw[: raw.rfind(b"\n\n") + 2] if cut else raw
    try:
        found = problems(api, whole, EXTRA)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return [f"no stream of events that can be read: {error!r}"]
    return [one for one in found if one not in ENDS] if cut else found


def api_of(path: str) -> str:
    """The API whose turns are asked for at a path, below whatever prefix; "" where none are."""
    return next((api for end, api in TURNS.items() if path.endswith(end)), "")


class Judged:
    """An ASGI application as it was; `check` fails when a stream of it was wrong."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._faults: list[str] = []
        self.streams = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        api = api_of(scope.get("path", ""))
        if not api or scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        stream = Stream()

        async def receiving() -> Any:
            message = await receive()
            stream.left |= message["type"] == "http.disconnect" and not stream.over
            return message

        async def sending(message: Any) -> None:
            await send(message)  # first: what could not be sent is not of the stream
            stream.take(message)

        try:
            await self._app(told_of(scope, stream.said), receiving, sending)
        finally:
            self._judge(api, stream)

    def _judge(self, api: str, stream: Stream) -> None:
        if stream.told and JUDGES:
            self.streams += 1
            raw = bytes(stream.said)
            found = faults(api, raw, cut=stream.left or not stream.over)
            self._faults += [f"{api}: {one}\n{raw[-2000:].decode()}" for one in found]

    def check(self) -> None:
        assert not self._faults, "\n\n".join(self._faults[:3])


def told_of(scope: Any, said: bytearray) -> Any:
    """The scope, where what goes past `send` is said as well."""
    if STRAIGHT not in scope:
        return scope
    loop, write = scope[STRAIGHT]

    def writing(data: bytes) -> bool:
        written: bool = write(data)
        if written:
            said.extend(data)
        return written

    return {**scope, STRAIGHT: (loop, writing)}


class Stream:
    """An answer as it is sent. `told` says that it is a stream of events, `over` that it ended, and
    `left` that its client was gone before.
    """

    def __init__(self) -> None:
        self.told = False
        self.over = self.left = False
        self.said = bytearray()

    def take(self, message: Any) -> None:
        match message["type"]:
            case "http.response.start":
                kind = dict(message["headers"]).get(b"content-type", b"")
                coded = b"content-encoding" in dict(message["headers"])
                self.told = kind.startswith(b"text/event-stream") and not coded
            case "http.response.body":
                self.said += message.get("body", b"")
                self.over = not message.get("more_body", False)
