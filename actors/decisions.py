"""Decision rounds: a model whose tool call still runs is asked whether it has seen enough.

The question is a branch of the conversation that made the call: the turn as it was rendered, the
reply with the call, and the interim result as the call's result, so that the engine that holds the
call's prefix computes the interim result and the answer only. Nothing of the branch is kept; the
client's next turn goes on from the same prefix as if nobody had asked.
"""

from __future__ import annotations

import uuid
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from actors.exchange import Exchange
from actors.ingress import Ingress
from actors.open_calls import OpenCall, OpenCalls
from turns.blocks import Message, Text, ToolResult
from turns.events import Event
from turns.turn import OutputFormat, Sampling, Thinking, ToolChoice, Turn

HARNESS = "treadle-decision"
ANSWER = 96
"""Tokens of an answer at most: one word, or a new stop condition."""


class Decision(Struct, frozen=True):
    """What the model said, and how many of the prompt's tokens its engine had at hand."""

    text: str
    prompt_tokens: int
    cached_tokens: int


class Folded(Exchange):
    """A turn that no client hears: its reply is all that is wanted."""

    def take(self, events: list[Event]) -> None:
        self.see(events)
        reply = self.fold.reply()
        if reply.stop is not None or reply.failed is not None:
            self.end()


class Decisions:
    """Asks the models about the calls that they made, through this ingress or another."""

    def __init__(self, ingress: Ingress, calls: OpenCalls) -> None:
        self._ingress = ingress
        self._calls = calls

    async def decide(self, call_id: str, owner: str, text: str, schema: dict[str, Any]) -> Decision:
        """The model's answer to `text`, held to `schema`. Cancelling it ends the engine's work.

        Raises InvalidRequestError for a call that is not known as this owner's.
        """
        call = await self._calls.find(call_id, owner)
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
