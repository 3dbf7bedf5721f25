"""Parsing: a turn whose parsing breaks fails alone."""

from __future__ import annotations

from typing import Any

import pytest

from actors.messages import Opening, Step
from actors.parsing import Parsing
from turns.events import TextDelta, TurnEnded, TurnFailed, TurnStarted
from turns.frames import Frame, ParseSpec


class Words:
    """Detokeniser and parser of a toy: token 13 is a defect."""

    over = False

    def feed(self, ids: Any, tokens: int = 0) -> Any:
        if 13 in ids:
            raise RuntimeError("a defect with a secret")
        return ids if tokens == 0 else [TextDelta(str(i)) for i in ids]

    def flush(self) -> list[int]:
        return []


def test_defect_in_one_turn_fails_it_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    parsing = Parsing(Words, lambda _: Words())  # type: ignore[arg-type, return-value]
    opened = [Opening(turn, "ingress", ParseSpec("f", ""), 3) for turn in ("bad", "good")]
    frames = [Frame("bad", [13], 0), Frame("good", [7], 0)]
    batches = parsing.take(Step(opened, frames))["ingress"]
    bad, good = (batch.events for batch in batches)
    assert isinstance(bad[-1], TurnFailed)
    assert "secret" not in bad[-1].message
    assert good == [TurnStarted(3), TextDelta("7")]
    assert len(parsing) == 1
    assert parsing.take(Step([], [Frame("bad", [7])])) == {}
    assert "turn bad" in caplog.text


class Ending(Words):
    """A toy that ends, by itself at token 9."""

    def feed(self, ids: Any, tokens: int = 0) -> Any:
        self.over = 9 in ids
        return super().feed(ids, tokens)

    def finish(self, finish: Any, usage: Any, *, error: str) -> Any:
        return [TurnEnded("end", usage)]


@pytest.mark.parametrize(
    ("frames", "output"),
    [
        pytest.param([([1, 2], None), ([3], "stop")], [1, 2, 3], id="the engine ends it"),
        pytest.param([([1, 2], None), ([9], None)], [1, 2, 9], id="the parser ends it"),
        pytest.param([([1, 2], None), ([9, 4], None)], None, id="in the middle of a step"),
    ],
)
def test_tokens_come_with_the_events_that_are_theirs(
    frames: list[tuple[list[int], Any]], output: list[int] | None
) -> None:
    parsing = Parsing(Ending, lambda _: Ending())  # type: ignore[arg-type, return-value]
    opened = [Opening("t", "ingress", ParseSpec("f", ""), 3)]
    sent = []
    for ids, finish in frames:
        step = Step(opened, [Frame("t", ids, 0, finish)])
        sent += parsing.take(step)["ingress"]
        opened = []
    assert [batch.ids for batch in sent] == [ids for ids, _ in frames]
    assert sent[0].exact
    assert sent[-1].exact == (output is not None)
    if output is not None:
        assert [*sent[0].ids, *sent[1].ids] == output


class Holding(Words):
    """A toy that says nothing of a token before the next one has come."""

    def __init__(self) -> None:
        self.held: list[int] = []

    def feed(self, ids: Any, tokens: int = 0) -> Any:
        if tokens == 0:
            return ids
        self.held += ids
        told, self.held = self.held[:-1], self.held[-1:]
        return [TextDelta(str(i)) for i in told]

    def finish(self, finish: Any, usage: Any, *, error: str) -> Any:
        return [TurnEnded("end", usage)]


def test_tokens_without_an_event_wait_for_the_next_one() -> None:
    parsing = Parsing(Holding, lambda _: Holding())  # type: ignore[arg-type, return-value]
    opened = [Opening("t", "ingress", ParseSpec("f", ""), 3)]
    (first,) = parsing.take(Step(opened, [Frame("t", [1], 0)]))["ingress"]
    assert (first.events, first.ids) == ([TurnStarted(3)], [1])
    assert parsing.take(Step([], [Frame("t", [])])) == {}
    (second,) = parsing.take(Step([], [Frame("t", [2])]))["ingress"]
    assert (second.events, second.ids) == ([TextDelta("1")], [2])


def test_turn_goes_on_behind_what_it_said_without_saying_it_again() -> None:
    parsing = Parsing(Holding, lambda _: Holding())  # type: ignore[arg-type, return-value]
    opened = [Opening("t~1", "ingress", ParseSpec("f", ""), 3, said=[1, 2])]
    frames = [Frame("t~1", [4], 0, "stop")]
    (batch,) = parsing.take(Step(opened, frames))["ingress"]
    started, told, end = batch.events
    assert (started, told) == (TurnStarted(3), TextDelta("2"))  # what had been held is told now
    assert batch.ids == [4]
    assert isinstance(end, TurnEnded)
    assert end.usage.output == 3


def test_turn_that_left_is_forgotten_behind_its_last_frame() -> None:
    parsing = Parsing(Words, lambda _: Words())  # type: ignore[arg-type, return-value]
    opened = [Opening("t", "ingress", ParseSpec("f", ""), 3)]
    parsing.take(Step(opened, [Frame("t", [1], 0)], left=["t", "a stranger"]))
    assert len(parsing) == 0
    assert parsing.take(Step([], [Frame("t", [2])])) == {}
