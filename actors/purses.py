"""What the session behind a tool call has left: time, room in the context, tokens of the task.

The gateway asks by the id that our ingress minted for the call, and gives the call no more than
that: a session's budget reaches its tools although no harness hands it on.
"""

from __future__ import annotations

from actors.ingress import Ingress
from actors.open_calls import OpenCall, OpenCalls
from toolruns.budget import Purse
from turns.blocks import ToolCall
from turns.errors import InvalidRequestError


class Purses:
    """One per ingress."""

    def __init__(self, ingress: Ingress, calls: OpenCalls) -> None:
        self._ingress = ingress
        self._calls = calls

    async def find(self, call_id: str, owner: str) -> Purse | None:
        """None for a call that is not known as this owner's: nothing is bounded by it."""
        try:
            call = await self._calls.find(call_id, owner)
        except InvalidRequestError:
            return None
        hints, usage = call.turn.hints, call.usage
        window = self._ingress.names.model(call.turn.model).context_window
        past = self._calls.clock() - call.at
        return Purse(
            deadline=None if hints.deadline_s is None else max(0.0, hints.deadline_s - past),
            context=max(0, window - usage.input - usage.output) if window else None,
            task_tokens=_left(hints.task_tokens, usage.output),
            further_calls=self._calls.further(call),
            concurrent=_beside(call),
        )


def _left(tokens: int | None, spent: int) -> int | None:
    return None if tokens is None else max(0, tokens - spent)


def _beside(call: OpenCall) -> int:
    return max(1, sum(isinstance(block, ToolCall) for block in call.blocks))
