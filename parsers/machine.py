"""One turn's parser: pieces of text in, events out. The public face of the room.

Rule of the file: sans-IO and total. No model output raises, and any cut of the same output gives
the same folded reply; only a programming error (feeding a parser that was finished) raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

import parsers.bodies
import parsers.gemma_body
import parsers.lists  # noqa: F401 - they register the readers that grammars name
from parsers.compiled import compiled
from parsers.detokenizer import Piece
from parsers.emitter import Emitter, Mint
from parsers.grammar import Grammar
from parsers.guided import forced, guided
from parsers.ids import nine
from parsers.schema import Schemas
from parsers.specials import clean
from parsers.states import Machine
from turns.events import (
    Cut,
    Event,
    ReasoningEnded,
    Stop,
    TextEnded,
    ToolCallReady,
    TurnEnded,
    TurnFailed,
    Usage,
)
from turns.frames import Finish
from turns.turn import Tool, ToolChoice

AUTO = ToolChoice()
_WINDOW = 4096  # characters read at once: what is read again is copied, and must stay short


class ParserFinishedError(ValueError):
    """The parser was fed or finished after it had been finished: make a new one per turn."""


class TurnParser:
    """Parses one turn.

    `tail` is the end of the rendered prompt: the start state is read from it. `mint(index, name)`
    makes the id of a call whose wire carries none. `ids`: pieces come from token ids, so control
    tokens are marked `special` and text that merely spells one is data; False for a transport of
    plain text, where markers are matched by their text.

    `stopped` is the stop string once it came; `over` says that it came, or that the one call that
    may be made (`tool_choice.parallel` false) is complete: the engine can be aborted, what follows
    is ignored. `reasoning_tokens` counts the tokens fed while the model reasoned.
    """

    def __init__(
        self,
        grammar: Grammar,
        *,
        mint: Mint,
        tools: tuple[Tool, ...] = (),
        tail: str = "",
        stop: tuple[str, ...] = (),
        tool_choice: ToolChoice = AUTO,
        ids: bool = False,
    ) -> None:
        calls = bool(tools) and tool_choice.mode != "none"
        table = compiled(guided(grammar, tool_choice.mode), ids=ids, calls=calls)
        node, edge = table.begin(tail)
        if grammar.calls is not None and grammar.calls.ids == "nine":
            mint = nine(mint)
        self._emitter = Emitter(mint=mint, stop=stop, edge=edge)
        self._machine = Machine(table, Schemas(tools), self._emitter, start=node)
        self._machine.desk.forced = forced(tool_choice)
        self._specials = table.specials if ids else None
        self._silent = table.silent
        self._single = not tool_choice.parallel
        self._called = False
        self._finished = False
        self.reasoning_tokens = 0

    @property
    def stopped(self) -> str | None:
        return self._emitter.stopped

    @property
    def over(self) -> bool:
        return self._called or self._emitter.stopped is not None

    def feed(self, pieces: Sequence[Piece], *, tokens: int = 1) -> list[Event]:
        """The events that these pieces complete. `tokens`: how many tokens they were."""
        if self._finished:
            raise ParserFinishedError("this turn's parser is finished: make a new TurnParser")
        if self._called:
            return []
        machine, emitter = self._machine, self._emitter
        if machine.reasoning:
            self.reasoning_tokens += tokens
        if len(pieces) == 1:
            text = self._text(pieces[0])
        else:
            text = "".join([self._text(piece) for piece in pieces])
        if text and emitter.stopped is None:
            if len(text) <= _WINDOW:
                machine.run(text)
            else:
                for at in range(0, len(text), _WINDOW):
                    machine.run(text[at : at + _WINDOW])
        return self._taken()

    def finish(self, finish: Finish, usage: Usage, *, error: str = "") -> list[Event]:
        """The closing events, TurnEnded last (TurnFailed when the engine failed).

        `length` always wins over a call; a stop string over `abort`, since it is why one aborts.
        """
        if self._finished:
            raise ParserFinishedError("this turn's parser is finished already")
        self._finished = True
        self._machine.finish(_CUTS[finish])
        events = self._taken()
        if finish == "error":
            # What was being said broke off and is not over: Codex keeps what is, and asks again.
            if events and isinstance(events[-1], TextEnded | ReasoningEnded):
                events.pop()
            events.append(TurnFailed("engine", error or "the engine failed; try again"))
            return events
        stop = self._stop(finish)
        matched = self.stopped if stop == "stop_sequence" else None
        if not usage.reasoning:
            usage = replace(usage, reasoning=self.reasoning_tokens)
        events.append(TurnEnded(stop, usage, matched))
        return events

    def _taken(self) -> list[Event]:
        """The events so far, none behind the end of a turn that may make one call."""
        events = self._emitter.take()
        if self._called:
            return []
        if self._single and self._emitter.ready:
            self._called = True
            ready = next(at for at, event in enumerate(events) if isinstance(event, ToolCallReady))
            return events[: ready + 1]
        return events

    def _text(self, piece: Piece) -> str:
        if piece.special and self._specials is not None:
            return "" if piece.text in self._silent else self._specials.code(piece.text)
        text = piece.text
        return text if text.isascii() else clean(text)

    def _stop(self, finish: Finish) -> Stop:
        if self.over:
            return "tool_use" if self._emitter.ready else "stop_sequence"
        match finish:
            case "length":
                return "length"
            case "abort" | "error":
                return "cancelled"
            case "stop":
                return "tool_use" if self._emitter.ready else "end"
            case _:
                assert_never(finish)


_CUTS: dict[Finish, Cut | None] = {
    "stop": None,
    "length": "length",
    "abort": "cancel",
    "error": "cancel",
}
