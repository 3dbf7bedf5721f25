"""Parsing: the frames of many turns in, their events out. No I/O; a parser actor or an ingress
(`parser: inline`) drives it, one call per engine step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from actors.messages import Opening, Step
from parsers.detokenizer import Detokenizer
from parsers.machine import TurnParser
from turns.events import Drawn, Event, TextDelta, TurnFailed, TurnStarted, Usage
from turns.frames import EventBatch, Frame

log = logging.getLogger(__name__)
DEFECT = "something went wrong inside the server where it read the model's output"

MakeParser = Callable[[Opening], TurnParser]
MakeDetokenizer = Callable[[], Detokenizer]


class TurnParsing:
    """One turn between detokeniser and parser.

    `fresh` are the tokens since the last batch of events; `exact` is False where it is not known
    which of them are the reply. A turn that goes on from elsewhere is brought, by its own tokens
    and without a word, to the very state in which it was left: the events so far depend on the
    tokens so far and not on how they were cut.
    """

    __slots__ = (
        "_detokenizer",
        "_made",
        "_opening",
        "_parser",
        "_started",
        "_tokens",
        "done",
        "exact",
        "fresh",
    )

    def __init__(self, opening: Opening, detokenizer: Detokenizer, parser: TurnParser) -> None:
        self._opening = opening
        self._detokenizer = detokenizer
        self._parser = parser
        self._started: TurnStarted | None = None
        self._tokens: list[Drawn] = []
        self._made = len(opening.said)
        self.fresh: list[int] = []
        self.exact = True
        self.done = False
        for token in opening.said:  # one by one: what was reasoning is counted by the token
            parser.feed(detokenizer.feed((token,)), tokens=1)

    @property
    def ingress(self) -> str:
        return self._opening.ingress

    def take(self, frame: Frame) -> list[Event]:
        """The events of one frame; sets `done` with the last one."""
        events: list[Event] = []
        if self._started is None:
            self._started = TurnStarted(self._opening.input_tokens, max(frame.cached, 0))
            events.append(self._started)
        parser, finish = self._parser, frame.finish
        if frame.ids:
            self.fresh += frame.ids
            self._made += len(frame.ids)
            if frame.logprobs:
                events += self._drawn(frame.ids, frame.logprobs)
            else:
                events += parser.feed(self._detokenizer.feed(frame.ids), tokens=len(frame.ids))
        if finish is not None and (rest := self._detokenizer.flush()):
            events += parser.feed(rest, tokens=0)
        if finish is None and parser.over:
            finish = "stop"
        if finish is not None:
            self.done = True
            usage = Usage(self._started.input_tokens, self._started.cached_tokens, self._made)
            events += parser.finish(finish, usage, error=frame.error)
            # Which of several tokens of the last step the reply ends with is not known.
            self.exact = not (parser.over and len(frame.ids) > 1)
        return events

    def _drawn(self, ids: list[int], rows: list[list[tuple[int, float]]]) -> list[Event]:
        """The events of tokens fed one by one, each text with the tokens that it is of."""
        tokens, events = self._tokens, list[Event]()
        for token, row in zip(ids, rows, strict=False):
            spelled = [(self._detokenizer.spelled(one), logprob) for one, logprob in row]
            if spelled:
                tokens.append(Drawn(*spelled[0], tuple(spelled[1:])))
            for event in self._parser.feed(self._detokenizer.feed((token,)), tokens=1):
                made = with_tokens(event, tokens) if isinstance(event, TextDelta) else event
                events.append(made)
                tokens.clear()
        return events


def with_tokens(delta: TextDelta, tokens: list[Drawn]) -> TextDelta:
    """The delta with the last of these tokens that cover its text: what stood before it (a marker,
    whitespace that is glue) is no part of it.
    """
    need = len(delta.text.encode())
    first = len(tokens)
    while first and need > 0:
        first -= 1
        need -= len(tokens[first].token)
    return TextDelta(delta.text, tuple(tokens[first:]))


class Parsing:
    """All turns that one parser has open. Frames of unknown turns are late and are ignored."""

    def __init__(self, detokenizer: MakeDetokenizer, parser: MakeParser) -> None:
        self._detokenizer = detokenizer
        self._parser = parser
        self._turns: dict[str, TurnParsing] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def take(self, step: Step) -> dict[str, list[EventBatch]]:
        """The events of one engine step, by the ingress that owns the turn."""
        for opening in step.opened:
            self._turns[opening.turn] = TurnParsing(
                opening, self._detokenizer(), self._parser(opening)
            )
        out: dict[str, list[EventBatch]] = {}
        for frame in step.frames:
            turn = self._turns.get(frame.turn)
            if turn is None:
                continue
            try:
                events = turn.take(frame)
            except Exception:
                # A defect that one turn's output meets must not cost the step's other turns theirs.
                log.exception("turn %s: a defect in its parsing", frame.turn)
                events, turn.done, turn.exact = [TurnFailed("internal", DEFECT)], True, False
            if turn.done:
                del self._turns[frame.turn]
            if events:
                batch = EventBatch(frame.turn, events, turn.fresh, turn.exact)
                turn.fresh = []
                out.setdefault(turn.ingress, []).append(batch)
        for name in step.left:
            self.leave(name)
        return out

    def leave(self, turn: str) -> None:
        """Forget a turn that has gone elsewhere; a stranger is no error."""
        self._turns.pop(turn, None)

    def forget(self, ingress: str) -> None:
        """Drop every turn of an ingress that is gone."""
        self._turns = {k: t for k, t in self._turns.items() if t.ingress != ingress}
