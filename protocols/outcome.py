"""How a turn ended, in one word, before each API spells it.

A call that was cut outranks everything but a failure: told that the reply is whole, a harness
would run a tool with half its arguments, so such a turn is reported as truncated whatever the
engine said.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Literal

from turns.blocks import ToolCall
from turns.events import Stop
from turns.reply import CutCall, ReplyBlock

Outcome = Literal["end", "tool_use", "length", "stop_sequence", "cancelled", "paused"]


def outcome(stop: Stop, *, called: bool, cut: bool) -> Outcome:
    """`called`: at least one call is complete. `cut`: at least one never will be."""
    if stop == "cancelled":
        return "cancelled"
    if cut or stop == "length":
        return "length"
    if stop == "stop_sequence":
        return "stop_sequence"
    if stop == "paused":
        return "paused"
    return "tool_use" if called else "end"


def outcome_of(
    stop: Stop | None, blocks: Iterable[ReplyBlock], served: Container[str] = ()
) -> Outcome:
    """The same for a whole reply; one that never ended was cancelled. A call to a `served` tool is
    none that the client must answer.
    """
    kinds = {type(b) for b in blocks if not (isinstance(b, ToolCall) and b.name in served)}
    return outcome(stop or "cancelled", called=ToolCall in kinds, cut=CutCall in kinds)
