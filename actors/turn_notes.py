"""Notes on turns: what a turn was like, kept when its exchange is over, for any ingress to tell.

Once a turn, never per token. See `observe.turn_traces` for what is in one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from actors.exchange import Exchange
from actors.keeper import Keeper
from actors.reception import Asked
from observe.turn_traces import BlockSeen, TraceFiles, TurnTrace
from protocols import ids
from protocols.registry import APIS
from sessions.records import Kind
from sessions.store import write
from turns.blocks import Reasoning, Text, ToolCall
from turns.reply import CutCall, ReplyBlock, ToolAnswer, ToolListing
from turns.turn import Turn

HARNESS = 80
TRACE = Kind("trace", TurnTrace)  # of a turn, by the stem of its id


class TurnNotes:
    """One per ingress. Traces are kept for `ttl` seconds; 0 keeps none but in `files`."""

    def __init__(self, keeper: Keeper, files: TraceFiles, *, ttl: float) -> None:
        self._keeper = keeper
        self._files = files
        self._ttl = ttl

    def noting(self, turn: Turn, asked: Asked, exchange: Exchange) -> Callable[[Any], None]:
        """What to call when the exchange is over."""
        at, began = time.time(), time.perf_counter()

        def over(_: Any) -> None:
            seconds = time.perf_counter() - began
            trace = trace_of(turn, asked, exchange, at=at, seconds=seconds)
            self._files.add(trace, asked.body)
            if self._ttl:
                self._keeper.put(write(TRACE, asked.owner, trace.turn, trace, ttl=self._ttl))

        return over


def trace_of(
    turn: Turn, asked: Asked, exchange: Exchange, *, at: float, seconds: float
) -> TurnTrace:
    """The turn as it is noted. `at` is when it was read, `seconds` how long it took."""
    reply, pace = exchange.fold.reply(), exchange.pace
    usage = reply.usage
    return TurnTrace(
        turn=ids.stem(turn.id),
        request=asked.id,
        at=at,
        api=turn.api,
        path=APIS[turn.api].path,
        model=turn.model,
        session=turn.session,
        harness=asked.headers.get("user-agent", "")[:HARNESS],
        stream=turn.stream,
        seconds=seconds,
        ttft=seconds - pace.lasted() if pace.lasted() >= 0 else -1.0,
        gap=pace.gap(),
        longest_gap=pace.longest(),
        stop=reply.stop or ("" if reply.failed else "cancelled"),
        failed=reply.failed.kind if reply.failed else "",
        input=usage.input,
        cached=usage.cached,
        output=usage.output,
        reasoning=usage.reasoning,
        blocks=tuple(seen(block) for block in reply.blocks),
    )


def seen(block: ReplyBlock) -> BlockSeen:
    """A block without its words."""
    match block:
        case Text(text=text):
            return BlockSeen("text", len(text))
        case Reasoning(text=text):
            return BlockSeen("reasoning", len(text))
        case ToolCall(name=name, arguments=arguments):
            return BlockSeen("call", len(arguments), name)
        case CutCall(call=call, reason=reason):
            return BlockSeen("call", len(call.arguments), call.name, reason)
        case ToolAnswer(text=text):
            return BlockSeen("answer", len(text))
        case ToolListing(tools=tools):
            return BlockSeen("listing", len(tools))
