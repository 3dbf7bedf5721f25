"""One step of a turn with server tools: an ordinary turn, whose events become the client's."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from actors.exchange import Exchange
from turns.events import (
    Event,
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    TextEnded,
    ToolArgumentsDelta,
    ToolCallAnswered,
    ToolCallCut,
    ToolCallProgressed,
    ToolCallReady,
    ToolCallStarted,
    ToolsListed,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)

Ready = Callable[[ToolCallStarted, str], None]
"""Hears of a call that is complete: as the client numbers it, and its arguments."""


class StepExchange(Exchange):
    """Hands the step's events on, its calls numbered on from `calls`; its ends are kept back, for
    they are not the turn's. `taken` says how many calls there are with this step's.
    """

    def __init__(
        self,
        pass_on: Callable[[list[Event]], None],
        began: Callable[[TurnStarted], list[Event]],
        ready: Ready,
        *,
        calls: int,
    ) -> None:
        super().__init__()
        self.taken = calls
        self._pass_on = pass_on
        self._began = began
        self._ready = ready
        self._calls = calls
        self._call = ToolCallStarted(0, "", "")

    def take(self, events: list[Event]) -> None:
        self.see(events)
        shown = [one for event in events for one in self._shown(event)]
        if shown:
            self._pass_on(shown)
        if isinstance(events[-1], TurnEnded | TurnFailed):
            self.end()

    def _shown(self, event: Event) -> list[Event]:
        match event:
            case TurnStarted():
                return self._began(event)
            case ToolCallStarted(index=index):
                self.taken = max(self.taken, self._calls + index + 1)
                self._call = replace(event, index=self._calls + index)
                return [self._call]
            case ToolCallReady(index=index, arguments=arguments):
                self._ready(self._call, arguments)
                return [replace(event, index=self._calls + index)]
            case ToolArgumentsDelta(index=index) | ToolCallCut(index=index):
                return [replace(event, index=self._calls + index)]
            case TurnEnded() | TurnFailed():
                return []
            case TextDelta() | TextEnded() | ReasoningDelta() | ReasoningEnded():
                return [event]
            case ToolsListed() | ToolCallProgressed() | ToolCallAnswered():
                return [event]
            case _:
                assert_never(event)
