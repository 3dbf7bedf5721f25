"""Decision rounds: a model whose tool call still runs is asked whether it has seen enough.

The question is a branch of the conversation that made the call: the turn as it was rendered, the
reply with the call, and the interim result as the call's result, so that the engine that holds the
call's prefix computes the interim result and the answer only. Nothing of the branch is kept; the
client's next turn goes on from the same prefix as if nobody had asked.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actors.exchange import Exchange
from actors.ingress import Ingress
from actors.spoken import spoken
from turns.blocks import Message, Reasoning, Text, ToolCall, ToolResult
from turns.errors import InvalidRequestError
from turns.events import Event, Usage
from turns.reply import Reply
from turns.turn import OutputFormat, Sampling, Thinking, ToolChoice, Turn

HARNESS = "treadle-decision"
ANSWER = 96
"""Tokens of an answer at most: one word, or a new stop condition."""


class Decision(Struct, frozen=True):
    """What the model said, and how many of the prompt's tokens its engine had at hand."""

    text: str
    prompt_tokens: int
    cached_tokens: int


class OpenCall(Struct, frozen=True):
    """A turn that made tool calls: who asked it, what was said, when (monotonic seconds). `size` is
    as in `Ingress.begin`; `made` counts the calls of the session up to these.
    """

    owner: str
    turn: Turn
    blocks: tuple[Text | Reasoning | ToolCall, ...]
    size: int
    usage: Usage = Usage()
    at: float = 0.0
    made: int = 0


class OpenCalls:
    """The latest calls that this ingress's models made, by the id that the client was told."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.clock = clock
        self._sessions: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._calls: OrderedDict[str, OpenCall] = OrderedDict()

    def note(self, owner: str, turn: Turn, reply: Reply, size: int) -> None:
        """Remember the reply's calls. Without an owner nobody could ask, so nothing is kept."""
        blocks = spoken(turn, reply)
        names = [block.id for block in blocks if isinstance(block, ToolCall)]
        if not owner or not self.most or not names:
            return
        made = self._counted(owner, turn.session, len(names))
        call = OpenCall(owner, turn, tuple(blocks), size, reply.usage, self.clock(), made)
        for name in names:
            self._calls[name] = call
        while len(self._calls) > self.most:
            self._calls.popitem(last=False)

    def further(self, call: OpenCall) -> float:
        """Calls that the session is expected to make behind this one: as many as sessions do on
        average, and at least one more while it lives. None can be expected of no session.
        """
        if not call.turn.session:
            return 0.0
        mean = sum(self._sessions.values()) / len(self._sessions)
        return max(1.0, mean - call.made)

    def _counted(self, owner: str, session: str, calls: int) -> int:
        if not session:
            return 0
        made = self._sessions.pop((owner, session), 0) + calls
        self._sessions[owner, session] = made
        while len(self._sessions) > self.most:
            self._sessions.popitem(last=False)
        return made

    def find(self, call_id: str, owner: str) -> OpenCall:
        """Raises InvalidRequestError, the same for a call of another owner and for none."""
        call = self._calls.get(call_id)
        if call is None or call.owner != owner:
            raise InvalidRequestError("no such open tool call", param="call_id")
        return call


class Folded(Exchange):
    """A turn that no client hears: its reply is all that is wanted."""

    def take(self, events: list[Event]) -> None:
        self.see(events)
        reply = self.fold.reply()
        if reply.stop is not None or reply.failed is not None:
            self.end()


class Decisions:
    """Asks the models of one ingress about the calls that they made through it."""

    def __init__(self, ingress: Ingress, calls: OpenCalls) -> None:
        self._ingress = ingress
        self._calls = calls

    async def decide(self, call_id: str, owner: str, text: str, schema: dict[str, Any]) -> Decision:
        """The model's answer to `text`, held to `schema`. Cancelling it ends the engine's work.

        Raises InvalidRequestError for a call that is not known here as this owner's.
        """
        call = self._calls.find(call_id, owner)
        turn, exchange = branch(call, call_id, text, schema), Folded()
        size = call.size + len(text)
        flight = await self._ingress.begin(
            turn, exchange, size=size, owner=owner, request=turn.id, harness=HARNESS
        )
        try:
            reply = await exchange.land()
        finally:
            self._ingress.leave(flight)
        said = "".join(block.text for block in reply.blocks if isinstance(block, Text))
        return Decision(said, reply.usage.input, reply.usage.cached)


def branch(call: OpenCall, call_id: str, text: str, schema: dict[str, Any]) -> Turn:
    """The turn that asks. What could change the prefix is as it was: tools, template, edits."""
    result = ToolResult(call_id, (Text(text),))
    messages = (Message("assistant", call.blocks), Message("tool", (result,)))
    return replace(
        call.turn,
        id=uuid.uuid4().hex,
        messages=call.turn.messages + messages,
        tool_choice=ToolChoice("none"),
        sampling=Sampling(max_tokens=ANSWER, temperature=0.0),
        thinking=Thinking("off"),
        output=OutputFormat("json_schema", schema, "decision", strict=True),
        stream=False,
        session="",
        previous="",
        store=False,
        echo={},
    )
