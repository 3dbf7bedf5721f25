"""The fold: blocks in their order, nothing completed that was cut."""

from __future__ import annotations

import pytest

from turns.blocks import Reasoning, Text, ToolCall
from turns.events import (
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    TextEnded,
    ToolArgumentsDelta,
    ToolCallCut,
    ToolCallReady,
    ToolCallStarted,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    Usage,
)
from turns.reply import CutCall, fold

CALL = [
    ToolCallStarted(0, "call_0", "f"),
    ToolArgumentsDelta(0, '{"a":'),
    ToolArgumentsDelta(0, "1}"),
]


def test_interleaved_blocks_keep_their_order() -> None:
    reply = fold(
        [
            TurnStarted(9, 4),
            ReasoningDelta("a"),
            ReasoningDelta("b"),
            ReasoningEnded(),
            *CALL,
            ToolCallReady(0, '{"a":1}'),
            TextDelta("c"),
            TextEnded(),
            TurnEnded("tool_use", Usage(9, 4, 5, 2)),
        ]
    )
    call = ToolCall("call_0", "f", '{"a":1}')
    assert reply.blocks == (Reasoning("ab"), call, Text("c"))
    assert (reply.stop, reply.usage) == ("tool_use", Usage(9, 4, 5, 2))


def test_cut_call_stays_as_far_as_it_came() -> None:
    reply = fold(
        [TurnStarted(9), *CALL[:2], ToolCallCut(0, "length"), TurnEnded("length", Usage())]
    )
    assert reply.blocks == (CutCall(ToolCall("call_0", "f", '{"a":'), "length"),)


def test_failed_turn_has_no_stop_and_keeps_what_the_prompt_cost() -> None:
    failed = TurnFailed("engine", "it died")
    reply = fold([TurnStarted(9, 4), TextDelta("half"), failed])
    assert (reply.stop, reply.failed, reply.usage) == (None, failed, Usage(9, 4))


def test_call_that_never_started_is_a_defect_of_the_parser() -> None:
    with pytest.raises(ValueError, match="never started"):
        fold([ToolCallReady(0, "{}")])
