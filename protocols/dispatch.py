"""The dispatch side channel: a complete call is announced the instant it is complete.

Opt-in (`x-treadle-dispatch: events|comments`, or the model's own setting, which `off` switches off
again), because strict clients fail on events they do not know. As `events`, an event of the API's
own framing; as `comments`, an SSE comment with the same JSON, which every client skips. A call is
announced once, and never one that was cut; a span of reasoning likewise, when it ends. The payload
is that of NVIDIA's post on agentic harnesses.
"""

from __future__ import annotations

import typing
from collections.abc import Container, Sequence
from typing import Any

from protocols import sse, tool_servers
from protocols.protocol import Encoder
from turns.events import (
    Event,
    ReasoningDelta,
    ReasoningEnded,
    ToolArgumentsDelta,
    ToolCallReady,
    ToolCallStarted,
)
from turns.reply import Reply
from turns.turn import Turn

CALL = "tool_call_dispatch"
REASONING = "reasoning_dispatch"


class Speaker(Encoder, typing.Protocol):
    """An encoder that can say something beside its stream."""

    def aside(self, name: str, fields: dict[str, Any]) -> bytes:
        """An event that the API does not know, in its own framing."""

    def called(self, started: ToolCallStarted, arguments: str) -> dict[str, Any]:
        """A complete call as the API spells it: `{index, id, type, function: {...}}`."""


def function(index: int, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A call of a plain function, as Chat spells it and NVIDIA's payload does."""
    said = {"name": name, "arguments": arguments}
    return {"index": index, "id": call_id, "type": "function", "function": said}


def announced(encoder: Speaker, turn: Turn) -> Encoder:
    """The encoder itself, or one that announces where the turn asked for it."""
    asked = turn.echo.get("dispatch") or "off"
    if asked == "off":
        return encoder
    return Announcer(
        encoder,
        comments=asked == "comments",
        choice=turn.echo.get("choice", 0),
        served=tool_servers.served(turn),
    )


def interim(speaker: Speaker, turn: Turn, name: str, fields: dict[str, Any]) -> bytes:
    """The synopsis of a tool that we run for the client, where the turn asked to be told."""
    asked = turn.echo.get("synopses") or "off"
    if asked == "comments":
        return sse.comment(name.encode() + b" " + sse.dumps(fields))
    return b"" if asked == "off" else speaker.aside(name, fields)


class Announcer:
    """Wraps an encoder; adds the announcements and touches nothing else. `choice` is which of
    several replies to one request this is.
    """

    def __init__(
        self,
        encoder: Speaker,
        *,
        comments: bool,
        choice: int = 0,
        served: Container[str] = frozenset(),
    ) -> None:
        self._encoder = encoder
        self._choice = choice
        self._served = served
        self._comments = comments
        self._started: ToolCallStarted | None = None
        self._thought: list[str] = []

    @property
    def finished(self) -> bool:
        return self._encoder.finished

    def encode(self, events: Sequence[Event]) -> bytes:
        out = []
        for event in events:
            if not self.finished:
                out += [self._announcement(event), self._encoder.encode((event,))]
        return b"".join(out)

    def keepalive(self) -> bytes:
        return self._encoder.keepalive()

    def whole(self, reply: Reply) -> tuple[int, bytes]:
        return self._encoder.whole(reply)

    def _announcement(self, event: Event) -> bytes:
        """What is said before the event itself is written."""
        match event:
            case ToolArgumentsDelta():
                pass
            case ReasoningDelta(text=text):
                self._thought.append(text)
            case ReasoningEnded():
                text = "".join(self._thought)
                self._thought.clear()
                return self._say(REASONING, {"index": self._choice, "reasoning_content": text})
            case ToolCallStarted(name=name):
                self._started = None if name in self._served else event
            case ToolCallReady(arguments=arguments) if self._started is not None:
                call = self._encoder.called(self._started, arguments)
                return self._say(CALL, {"choice_index": self._choice, "tool_call": call})
            case _:
                pass
        return b""

    def _say(self, name: str, fields: dict[str, Any]) -> bytes:
        if self._comments:
            return sse.comment(name.encode() + b" " + sse.dumps(fields))
        return self._encoder.aside(name, fields)
